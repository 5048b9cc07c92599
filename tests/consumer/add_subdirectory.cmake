# SPDX-License-Identifier: BSD-2-Clause
# add_subdirectory() of the sources: the consumer gets usdt::usdt and usdt_add_bpf(), and none of our tools, tests,
# benchmarks or install rules.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
# With the flags and include roots of our own build, whose objects ccache has.
configure_and_build(${PROJECT_DIR}/add_subdirectory consumer ${SAME_BUILD} -DUSDT_SOURCE_DIR=${USDT_SOURCE_DIR}
                    -DUSDT_ROOMS=${USDT_BINARY_DIR}/rooms)
expect_probes(${WORK_DIR}/build/consumer)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --target help)
if(output MATCHES "_test|_bench|usdt-list|usdt-trace|example_")
  message(FATAL_ERROR "our tools or tests are targets of the consumer's project:\n${output}")
endif()
run(${CMAKE_COMMAND} --install ${WORK_DIR}/build --prefix ${WORK_DIR}/prefix)
file(GLOB_RECURSE installed ${WORK_DIR}/prefix/*)
if(installed)
  message(FATAL_ERROR "installing the consumer's project installs ours: ${installed}")
endif()
