# SPDX-License-Identifier: BSD-2-Clause
# find_package(usdt) from an install prefix: the library, and usdt_add_bpf() with the installed BPF headers. Only who calls
# that needs clang.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt(${USDT_BINARY_DIR})
configure_and_build(${PROJECT_DIR}/find_package all -DCMAKE_PREFIX_PATH=${prefix})
expect_probes(${WORK_DIR}/build/consumer)
run(${WORK_DIR}/build/run_time_static)
run(${WORK_DIR}/build/run_time_shared)
foreach(file LICENSE LICENSES/GPL-2.0.txt)
  if(NOT EXISTS ${prefix}/share/doc/usdt/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

# A machine without clang: CMake finds no program where those usually are, but for the few that it is told.
find_program(PKG_CONFIG pkg-config REQUIRED)
file(WRITE ${WORK_DIR}/without_clang.cmake "
set(CMAKE_IGNORE_PATH \"/usr/bin;/bin;/usr/local/bin\" CACHE STRING \"\")
set(PKG_CONFIG_EXECUTABLE ${PKG_CONFIG} CACHE FILEPATH \"\")
set(CMAKE_PREFIX_PATH ${prefix} CACHE PATH \"\")
")
set(without_clang -C ${WORK_DIR}/without_clang.cmake)
set(WORK_DIR ${WORK_DIR}/without_clang)
configure_and_build(${PROJECT_DIR}/find_package all ${without_clang} -DWITH_BPF=OFF)
expect_probes(${WORK_DIR}/build/consumer)
execute_process(COMMAND ${CMAKE_COMMAND} -DWITH_BPF=ON ${WORK_DIR}/build RESULT_VARIABLE result ERROR_VARIABLE text
                OUTPUT_QUIET)
if(result EQUAL 0 OR NOT text MATCHES "usdt_add_bpf\\(hits\\): BPF programs are compiled with clang")
  message(FATAL_ERROR "usdt_add_bpf() without clang: ended with ${result}:\n${text}")
endif()
