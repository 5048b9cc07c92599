# SPDX-License-Identifier: BSD-2-Clause
# usdt.pc from an install prefix, for users without CMake: one compiler command. It names the place it lies in, also when
# the prefix was moved.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt(${USDT_BINARY_DIR})
file(RENAME ${prefix} ${WORK_DIR}/moved)
use_pkg_config(${WORK_DIR}/moved)
compile_with_pkg_config()
expect_probes(${WORK_DIR}/consumer)
