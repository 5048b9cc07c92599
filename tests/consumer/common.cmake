# SPDX-License-Identifier: BSD-2-Clause
# What the consumer tests share. WORK_DIR is theirs alone; nothing is written elsewhere.
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})

# run(COMMAND...): runs it, keeps its output in `output`, fails the test with that output if it fails.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result}:\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

# With the options of our own build, whose objects ccache has.
set(SAME_BUILD -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC}
               -DCMAKE_CXX_FLAGS_DEBUG=${DEBUG_FLAGS} -DUSDT_WERROR=${USDT_WERROR} -DUSDT_UNITY=${UNITY}
               -DCMAKE_C_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})

# install_usdt(BUILD): the build tree's install, into a prefix inside WORK_DIR; sets `prefix`.
function(install_usdt build)
  run(${CMAKE_COMMAND} --install ${build} --prefix ${WORK_DIR}/prefix)
  set(prefix ${WORK_DIR}/prefix PARENT_SCOPE)
endfunction()

# use_pkg_config(PREFIX): pkg-config finds the usdt.pc of PREFIX.
function(use_pkg_config prefix)
  file(GLOB_RECURSE pc ${prefix}/*/usdt.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  set(ENV{PKG_CONFIG_PATH} ${pc_dir})
endfunction()

# compile_with_pkg_config(): WORK_DIR/consumer, by one compiler command. The prefix is the one that usdt.pc says.
function(compile_with_pkg_config)
  run(pkg-config --dont-define-prefix --cflags --libs usdt)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${CXX} -std=c++20 ${PROJECT_DIR}/consumer.cpp -o ${WORK_DIR}/consumer ${flags})
endfunction()

# configure_and_build(SOURCE TARGET OPTIONS...): builds TARGET of the consumer project SOURCE.
function(configure_and_build source target)
  run(${CMAKE_COMMAND} -S ${source} -B ${WORK_DIR}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${CC} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --target ${target} --parallel 2)
endfunction()

# expect_probes(PROGRAM): PROGRAM lists the probes of the demo program with their types.
function(expect_probes program)
  run(${program} ${TARGET_PROGRAM})
  foreach(line "orders:received(u64, u64, i32)" "orders:priced(u64, f64, f32)" "orders:stock(u64, i16)" "orders:shipped")
    string(FIND "${output}" "${line}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "'${line}' is not in the output of the consumer:\n${output}")
    endif()
  endforeach()
endfunction()
