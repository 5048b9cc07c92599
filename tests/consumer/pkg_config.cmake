# SPDX-License-Identifier: BSD-2-Clause
# usdt.pc from an install prefix, for users without CMake: one compiler command.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt()
file(GLOB_RECURSE pc ${prefix}/*/usdt.pc)
cmake_path(GET pc PARENT_PATH pc_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
run(pkg-config --define-prefix --cflags --libs usdt)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CXX} -std=c++20 ${PROJECT_DIR}/consumer.cpp -o ${WORK_DIR}/consumer ${flags})
expect_probes(${WORK_DIR}/consumer)
