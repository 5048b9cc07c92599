# SPDX-License-Identifier: BSD-2-Clause
# USDT_FMT_SOURCE: fmt's compiled part as a source file of ours. Debian has fmt as a shared library only. Compiled as for
# that one, so that ccache knows the objects of a usual build.
set(USDT_FMT_SOURCE ${PROJECT_BINARY_DIR}/fmt.cpp)
file(CONFIGURE OUTPUT ${USDT_FMT_SOURCE} CONTENT "#include <fmt/format-inl.h>
template fmt::detail::locale_ref::locale_ref(const std::locale&);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;
template auto fmt::detail::thousands_sep_impl(fmt::detail::locale_ref) -> fmt::detail::thousands_sep_result<char>;
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
template void fmt::detail::buffer<char>::append(const char*, const char*);
template auto fmt::detail::dragonbox::to_decimal(float) noexcept -> fmt::detail::dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double) noexcept -> fmt::detail::dragonbox::decimal_fp<double>;
#if FMT_VERSION < 110100  // later it is no template
template void fmt::detail::vformat_to(fmt::detail::buffer<char>&, fmt::string_view,
                                      fmt::basic_format_args<fmt::buffer_context<char>>, fmt::detail::locale_ref);
#endif
" @ONLY)
