# SPDX-License-Identifier: BSD-2-Clause
# usdt.pc from an install prefix, for users without CMake: one compiler command. It names the place it lies in, also when
# the prefix was moved.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
install_usdt(${USDT_BINARY_DIR})
file(RENAME ${prefix} ${WORK_DIR}/moved)
use_pkg_config(${WORK_DIR}/moved)
compile_with_pkg_config()
expect_probes(${WORK_DIR}/consumer)

# Whoever builds with the strictest warnings includes each header, alone, where nothing tells the compiler that it is not
# their own.
run(pkg-config --dont-define-prefix --cflags usdt)
separate_arguments(includes UNIX_COMMAND "${output}")
set(strict -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Werror -fsyntax-only)
file(GLOB headers ${WORK_DIR}/moved/include/usdt/*.h ${WORK_DIR}/moved/include/usdt/*.hpp)
list(LENGTH headers count)
if(count LESS 40)
  message(FATAL_ERROR "${count} headers in ${WORK_DIR}/moved/include/usdt")
endif()
foreach(header IN LISTS headers)
  cmake_path(GET header FILENAME name)
  file(WRITE ${WORK_DIR}/alone.cpp "#include <usdt/${name}>\n")
  run(${CXX} -std=c++20 ${strict} ${includes} ${WORK_DIR}/alone.cpp)
  if(name MATCHES "\\.h$")
    file(WRITE ${WORK_DIR}/alone.c "#include <usdt/${name}>\nint main(void) { return 0; }\n")
    run(${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only ${includes} ${WORK_DIR}/alone.c)
  endif()
endforeach()

# What the whole interface costs a file of theirs: lines of libstdc++ 12, which every other one has more or less of. They
# were 109,019.
execute_process(COMMAND ${CXX} -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
if(version MATCHES "^12")
  file(WRITE ${WORK_DIR}/alone.cpp "#include <usdt/usdt.hpp>\n")
  run(${CXX} -std=c++20 ${includes} -E ${WORK_DIR}/alone.cpp -o ${WORK_DIR}/alone.ii)
  file(STRINGS ${WORK_DIR}/alone.ii lines)
  list(LENGTH lines count)
  if(count GREATER 102000)
    message(FATAL_ERROR "<usdt/usdt.hpp> is ${count} lines to the compiler")
  endif()
endif()

# libusdt-provider, in C and with its libc alone; the same in an archive.
run(pkg-config --dont-define-prefix --cflags --libs libusdt-provider)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${CC} -std=gnu11 -Wall -Wextra -Werror ${PROJECT_DIR}/find_package/run_time.c -o ${WORK_DIR}/run_time ${flags})
file(GLOB_RECURSE library ${WORK_DIR}/moved/*/libusdt-provider.so.1)
cmake_path(GET library PARENT_PATH library_dir)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${library_dir} ${WORK_DIR}/run_time)
run(${CC} -std=gnu11 ${PROJECT_DIR}/find_package/run_time.c -o ${WORK_DIR}/run_time_static ${flags} -static)
run(${WORK_DIR}/run_time_static)
