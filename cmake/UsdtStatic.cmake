# SPDX-License-Identifier: BSD-2-Clause
# USDT_STATIC: programs that need nothing of the machine they run on, such as a guest of tests/vm with no libraries.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf>=1.1)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
target_link_libraries(PkgConfig::LIBELF INTERFACE PkgConfig::ZLIB)
target_link_libraries(PkgConfig::LIBBPF INTERFACE PkgConfig::LIBELF)
# What libdw unpacks sections with; libbz2 has no pkg-config file.
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(LZMA REQUIRED IMPORTED_TARGET liblzma)
find_library(USDT_BZ2 bz2 REQUIRED)
target_link_libraries(PkgConfig::LIBDW INTERFACE PkgConfig::LIBELF PkgConfig::LZMA ${USDT_BZ2})
pkg_check_modules(LIBZSTD REQUIRED IMPORTED_TARGET libzstd)
# Behind everything: libelf, which comes last of those that need it, stands behind where CMake puts it.
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${ZLIB_LINK_LIBRARIES}")
add_link_options(-static)

include(${PROJECT_SOURCE_DIR}/cmake/UsdtFmt.cmake)
add_library(usdt_static_fmt STATIC ${USDT_FMT_SOURCE})
target_compile_definitions(usdt_static_fmt INTERFACE FMT_SHARED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_link_libraries(fmt::fmt INTERFACE usdt_static_fmt)
