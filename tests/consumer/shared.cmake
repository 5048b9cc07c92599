# SPDX-License-Identifier: BSD-2-Clause
# BUILD_SHARED_LIBS: libusdt.so exports the public headers' names and no others; installed, it is found by find_package and
# pkg-config, and brings what it needs itself. It is linked from what the test add_subdirectory has compiled.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
set(USDT_BUILD ${SUBPROJECT_DIR}/build)
run(${CMAKE_COMMAND} -DBUILD_SHARED_LIBS=ON -DUSDT_INSTALL=ON ${USDT_BUILD})
run(${CMAKE_COMMAND} --build ${USDT_BUILD} --parallel 2)
expect_probes(${USDT_BUILD}/consumer)
run(python3 ${PROJECT_DIR}/exports.py ${USDT_BUILD}/usdt/sdk/libusdt.so ${USDT_BUILD}/usdt ${USDT_SOURCE_DIR})

install_usdt(${USDT_BUILD})
file(GLOB_RECURSE library ${prefix}/*/libusdt.so.1.0)
run(readelf -dW ${library})
if(NOT output MATCHES "Library soname: \\[libusdt.so.1.0\\]")
  message(FATAL_ERROR "the soname is another one:\n${output}")
endif()

configure_and_build(${PROJECT_DIR}/find_package all -DCMAKE_PREFIX_PATH=${prefix})
expect_probes(${WORK_DIR}/build/consumer)

use_pkg_config(${prefix})
run(pkg-config --dont-define-prefix --libs usdt)
if(output MATCHES "-lbpf|-lfmt")
  message(FATAL_ERROR "what only libusdt.so needs is linked by its users:\n${output}")
endif()
compile_with_pkg_config()
cmake_path(GET library PARENT_PATH library_dir)
set(ENV{LD_LIBRARY_PATH} ${library_dir})
expect_probes(${WORK_DIR}/consumer)
