# SPDX-License-Identifier: BSD-2-Clause
# The public headers compile for machines of 32 bits, which have neither __int128 nor a size_t as wide as an address of
# the programs that are traced.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
set(compile ${CXX} -m32 -std=c++20 -Wall -Wextra -Werror -fsyntax-only)
file(WRITE ${WORK_DIR}/nothing.cpp "#include <version>\n")
execute_process(COMMAND ${compile} ${WORK_DIR}/nothing.cpp RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(NOT result EQUAL 0)
  message(STATUS "SKIP: ${CXX} -m32 finds no headers (g++-multilib)")
  return()
endif()
file(WRITE ${WORK_DIR}/all.cpp "#include <usdt/usdt.hpp>\n")
run(${compile} -I${USDT_SOURCE_DIR}/sdk/include -I${USDT_SOURCE_DIR}/bpf/include ${WORK_DIR}/all.cpp)
