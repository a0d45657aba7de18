#include "runtime/kernels/sigmoid.hpp"
#include "runtime/kernels/vector_steps.hpp"
namespace mneme::kernels {
namespace {

struct sigmoid_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    using vec = typename floats<Lanes>::type;
    vec e = x[0] < 0.0F ? x[0] : -x[0];
    exp_nonpositive<Lanes>(e); // -|x| cannot overflow
    const vec larger = 1.0F / (1.0F + e), smaller = e * larger;
    y = x[0] < 0.0F ? smaller : larger;
  }
};

struct sigmoid_backward_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& dx, const typename floats<Lanes>::type (&in)[2]) const {
    dx = in[0] * in[1] * (1.0F - in[1]);
  }
};

struct tangent_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    using vec = typename floats<Lanes>::type;
    const vec size = x[0] < 0.0F ? -x[0] : x[0], square = x[0] * x[0];
    vec e = size * -2.0F;
    exp_nonpositive<Lanes>(e);
    const vec far = (1.0F - e) / (1.0F + e);
    vec series = square * -0.00886323552F + 0.0218694885F; // Taylor series of tanh(x) / x up to x^10
    series = series * square - 0.0539682540F;
    series = series * square + 0.133333333F;
    series = series * square - 0.333333333F;
    const vec near = size + size * square * series; // used for small |x|, where 1 - e would lose digits
    const vec result = size < 0.35F ? near : far;
    y = x[0] < 0.0F ? -result : result;
  }
};

template <class Set>
MNEME_INLINE void sigmoid_body(float* y, const float* x, std::int64_t n) {
  const float* const in[] = {x};
  for_vectors<Set::lanes>(y, in, n, sigmoid_step{});
}
template <class Set>
MNEME_INLINE void sigmoid_backward_body(float* dx, const float* d, const float* y, std::int64_t n) {
  const float* const in[] = {d, y};
  for_vectors<Set::lanes>(dx, in, n, sigmoid_backward_step{});
}
template <class Set>
MNEME_INLINE void tangent_body(float* y, const float* x, std::int64_t n) {
  const float* const in[] = {x};
  for_vectors<Set::lanes>(y, in, n, tangent_step{});
}

MNEME_KERNEL(sigmoid, (float* y, const float* x, std::int64_t n), (y, x, n))
MNEME_KERNEL(sigmoid_backward, (float* dx, const float* d, const float* y, std::int64_t n), (dx, d, y, n))
MNEME_KERNEL(tangent, (float* y, const float* x, std::int64_t n), (y, x, n))

} // namespace

void sigmoid(float* y, const float* x, std::int64_t n) { best_sigmoid(y, x, n); }

void sigmoid_backward(float* dx, const float* d, const float* y, std::int64_t n) { best_sigmoid_backward(dx, d, y, n); }

void hyperbolic_tangent(float* y, const float* x, std::int64_t n) { best_tangent(y, x, n); }

} // namespace mneme::kernels
