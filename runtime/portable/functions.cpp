#include "runtime/portable/functions.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include "runtime/portable/target.hpp"
#include <ATen/ATen.h>
#include <cstring>
#include <immintrin.h>
#include <stdexcept>
#include <string_view>
namespace mneme::portable {

namespace {

/// The square root, which every processor rounds correctly.
struct function_sqrt {
  static constexpr const char* text = "sqrt";
  MNEME_PORTABLE static void floats(float* out, const float* in) {
    _mm256_storeu_ps(out, _mm256_sqrt_ps(_mm256_loadu_ps(in)));
  }
  MNEME_PORTABLE static void doubles(double* out, const double* in) {
    _mm256_storeu_pd(out, _mm256_sqrt_pd(_mm256_loadu_pd(in)));
  }
};

} // namespace

// N. Shibata and F. Petrogalli, "SLEEF: A Portable Vectorized Library of C Standard Mathematical Functions", 2020. The
// suffix u10 means an error of at most 1.0 units in the last place, u15 of at most 1.5.
// clang-format off
#define MNEME_FUNCTIONS(APPLY)                                                                                         \
  APPLY(exp, u10)                                                                                                      \
  APPLY(exp2, u10)                                                                                                     \
  APPLY(expm1, u10)                                                                                                    \
  APPLY(log, u10)                                                                                                      \
  APPLY(log2, u10)                                                                                                     \
  APPLY(log10, u10)                                                                                                    \
  APPLY(log1p, u10)                                                                                                    \
  APPLY(sin, u10)                                                                                                      \
  APPLY(cos, u10)                                                                                                      \
  APPLY(tan, u10)                                                                                                      \
  APPLY(asin, u10)                                                                                                     \
  APPLY(acos, u10)                                                                                                     \
  APPLY(atan, u10)                                                                                                     \
  APPLY(sinh, u10)                                                                                                     \
  APPLY(cosh, u10)                                                                                                     \
  APPLY(tanh, u10)                                                                                                     \
  APPLY(asinh, u10)                                                                                                    \
  APPLY(acosh, u10)                                                                                                    \
  APPLY(atanh, u10)                                                                                                    \
  APPLY(erf, u10)                                                                                                      \
  APPLY(erfc, u15)
// clang-format on

#define MNEME_DECLARE(name, error)                                                                                     \
  extern "C" __m256 Sleef_##name##f8_##error##avx2(__m256);                                                            \
  extern "C" __m256d Sleef_##name##d4_##error##avx2(__m256d);                                                          \
  namespace {                                                                                                          \
  struct function_##name {                                                                                             \
    static constexpr const char* text = #name;                                                                         \
    MNEME_PORTABLE static void floats(float* out, const float* in) {                                                   \
      _mm256_storeu_ps(out, Sleef_##name##f8_##error##avx2(_mm256_loadu_ps(in)));                                      \
    }                                                                                                                  \
    MNEME_PORTABLE static void doubles(double* out, const double* in) {                                                \
      _mm256_storeu_pd(out, Sleef_##name##d4_##error##avx2(_mm256_loadu_pd(in)));                                      \
    }                                                                                                                  \
  };                                                                                                                   \
  }
MNEME_FUNCTIONS(MNEME_DECLARE);
#undef MNEME_DECLARE

namespace {

/// Functions whose vector version uses another algorithm if any number in the vector is large.
template <class Function>
constexpr bool has_two_ways = std::string_view(Function::text) == "sin" || std::string_view(Function::text) == "cos" ||
                              std::string_view(Function::text) == "tan";

/// Applies `step` to whole vectors and to the zero-padded remainder. With `Alone`, applies it to each number
/// separately.
template <class T, std::size_t Lanes, bool Alone, class Step>
void for_vectors(T* out, const T* in, std::int64_t n, Step step) {
  std::int64_t i = 0;
  for (; Alone && i < n; ++i) {
    T single[Lanes] = {in[i]};
    step(single, single);
    out[i] = single[0];
  }
  for (; i + std::int64_t{Lanes} <= n; i += Lanes)
    step(out + i, in + i);
  if (i == n)
    return;
  T left[Lanes] = {};
  std::memcpy(left, in + i, static_cast<std::size_t>(n - i) * sizeof(T));
  step(left, left);
  std::memcpy(out + i, left, static_cast<std::size_t>(n - i) * sizeof(T));
}

/// Returns `in` as a contiguous tensor in the dtype of the result, which is float32 for integers. Throws
/// std::runtime_error for other dtypes than float32 and float64.
at::Tensor operand_of(const at::Tensor& in, const char* name) {
  const auto type = in.scalar_type();
  if (at::isIntegralType(type, /*includeBool=*/true))
    return in.to(at::kFloat);
  if (type != at::kFloat && type != at::kDouble)
    throw std::runtime_error(std::string(name) + " of " + c10::toString(type) + " is not portable");
  return in.contiguous();
}

template <class Function>
at::Tensor applied(const at::Tensor& in) {
  const auto from = operand_of(in, Function::text);
  auto out = at::empty_like(from, at::MemoryFormat::Contiguous);
  if (from.scalar_type() == at::kFloat)
    for_vectors<float, 8, has_two_ways<Function>>(
        out.template mutable_data_ptr<float>(), from.template const_data_ptr<float>(), from.numel(), Function::floats);
  else
    for_vectors<double, 4, has_two_ways<Function>>(out.template mutable_data_ptr<double>(),
                                                   from.template const_data_ptr<double>(), from.numel(),
                                                   Function::doubles);
  return out;
}

template <class Function>
at::Tensor& applied_out(const at::Tensor& in, at::Tensor& out) {
  const auto result = applied<Function>(in);
  out.resize_(result.sizes());
  return out.copy_(result);
}

template <class Function>
at::Tensor& applied_in_place(at::Tensor& in) {
  return in.copy_(applied<Function>(in));
}

template <class Function>
void register_function() {
  const auto name = std::string("aten::") + Function::text;
  replace(name, "", &applied<Function>);
  replace(name, "out", &applied_out<Function>);
  replace(name + "_", "", &applied_in_place<Function>);
}

} // namespace

void register_functions() {
#define MNEME_REGISTER(name, error) register_function<function_##name>();
  MNEME_FUNCTIONS(MNEME_REGISTER)
#undef MNEME_REGISTER
  register_function<function_sqrt>();
}

} // namespace mneme::portable
