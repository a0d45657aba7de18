// Compiles the functions that fmt's headers only declare, once for all sources. LibTorch's wheel contains headers of a
// newer fmt, which are found before the system's, and no library on the system matches them.
#include <fmt/format-inl.h>
FMT_BEGIN_NAMESPACE
template locale_ref::locale_ref(const std::locale& locale);
template auto locale_ref::get<std::locale>() const -> std::locale;
namespace detail {
template auto dragonbox::to_decimal(float number) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double number) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
} // namespace detail
FMT_END_NAMESPACE
