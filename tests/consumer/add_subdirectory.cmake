# SPDX-License-Identifier: BSD-2-Clause
# add_subdirectory() of the sources: the consumer gets usdt::usdt, and neither our tests nor our benchmarks.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
# With the flags of our own build, whose objects ccache has.
configure_and_build(${PROJECT_DIR}/add_subdirectory consumer -DUSDT_SOURCE_DIR=${USDT_SOURCE_DIR}
                    -DUSDT_WERROR=${USDT_WERROR})
expect_probes(${WORK_DIR}/build/consumer)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --target help)
if(output MATCHES "_test|_bench")
  message(FATAL_ERROR "our tests are targets of the consumer's project:\n${output}")
endif()
