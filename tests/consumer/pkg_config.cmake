# SPDX-License-Identifier: BSD-2-Clause
# usdt.pc from an install prefix, for users without CMake: one compiler command. It names the place it lies in, also when
# the prefix was moved.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt(${USDT_BINARY_DIR})
file(RENAME ${prefix} ${WORK_DIR}/moved)
use_pkg_config(${WORK_DIR}/moved)
compile_with_pkg_config()
expect_probes(${WORK_DIR}/consumer)

# libusdt-provider, in C and with its libc alone; the same in an archive.
run(pkg-config --dont-define-prefix --cflags --libs libusdt-provider)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CC} -std=gnu11 -Wall -Wextra -Werror ${PROJECT_DIR}/find_package/run_time.c -o ${WORK_DIR}/run_time ${flags})
file(GLOB_RECURSE library ${WORK_DIR}/moved/*/libusdt-provider.so.1)
cmake_path(GET library PARENT_PATH library_dir)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_dir} ${WORK_DIR}/run_time)
run(${CC} -std=gnu11 ${PROJECT_DIR}/find_package/run_time.c -o ${WORK_DIR}/run_time_static ${flags} -static)
run(${WORK_DIR}/run_time_static)
