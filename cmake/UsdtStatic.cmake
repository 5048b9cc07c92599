# SPDX-License-Identifier: BSD-2-Clause
# USDT_STATIC: programs that need nothing of the machine they run on, such as a guest of tests/vm with no libraries.
# libdw is left out: the archives name it and nothing calls it, and its static form wants libraries of its own.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf>=1.1)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
add_library(PkgConfig::LIBDW INTERFACE IMPORTED)
target_link_libraries(PkgConfig::LIBELF INTERFACE PkgConfig::ZLIB)
target_link_libraries(PkgConfig::LIBBPF INTERFACE PkgConfig::LIBELF)
add_link_options(-static)

# Debian has fmt as a shared library only. Compiled as for that one, so that ccache knows the objects of a usual build.
file(WRITE ${PROJECT_BINARY_DIR}/fmt.cpp "#include <fmt/format-inl.h>
template fmt::detail::locale_ref::locale_ref(const std::locale&);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;
template auto fmt::detail::thousands_sep_impl(fmt::detail::locale_ref) -> fmt::detail::thousands_sep_result<char>;
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
template void fmt::detail::buffer<char>::append(const char*, const char*);
template auto fmt::detail::dragonbox::to_decimal(float) noexcept -> fmt::detail::dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double) noexcept -> fmt::detail::dragonbox::decimal_fp<double>;
template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view,
                                      fmt::basic_format_args<fmt::buffer_context<char>>, fmt::detail::locale_ref);
")
add_library(usdt_static_fmt STATIC ${PROJECT_BINARY_DIR}/fmt.cpp)
target_compile_definitions(usdt_static_fmt INTERFACE FMT_SHARED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_link_libraries(fmt::fmt INTERFACE usdt_static_fmt)
