// SPDX-License-Identifier: Apache-2.0
// {fmt} compiled into strait: Debian ships it as a shared library only, and a user of libstrait should not inherit it.
//
// The inline file defines the plain functions; the templates that the headers leave to a library are named below. One
// that is missing here shows as an undefined symbol when libstrait is linked.
#include <fmt/format-inl.h>

namespace fmt {
namespace detail {
template class buffer<char>;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, basic_string_view<char>, basic_format_args<buffer_context<char>>, locale_ref);
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template locale_ref::locale_ref(const std::locale&);
template std::locale locale_ref::get<std::locale>() const;
}  // namespace detail
}  // namespace fmt
