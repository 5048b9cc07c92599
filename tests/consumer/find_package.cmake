# SPDX-License-Identifier: BSD-2-Clause
# find_package(usdt) from an install prefix: the library, and usdt_add_bpf() with the installed BPF headers.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt()
configure_and_build(${PROJECT_DIR}/find_package all -DCMAKE_PREFIX_PATH=${prefix})
expect_probes(${WORK_DIR}/build/consumer)
