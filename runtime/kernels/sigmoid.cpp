#include "runtime/kernels/sigmoid.hpp"
#include "runtime/kernels/vector_steps.hpp"
namespace mneme::kernels {
namespace {

/// y = sigmoid(x), and 1 - y to all its digits.
template <int Lanes>
MNEME_INLINE void squash(const typename floats<Lanes>::type& x, typename floats<Lanes>::type& y,
                         typename floats<Lanes>::type& complement) {
  using vec = typename floats<Lanes>::type;
  vec e = x < 0.0F ? x : -x;
  exponentiate<Lanes>(e); // of -|x|: never overflows
  const vec larger = 1.0F / (1.0F + e), smaller = e * larger;
  y = x < 0.0F ? smaller : larger;
  complement = x < 0.0F ? larger : smaller;
}

struct sigmoid_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    typename floats<Lanes>::type complement;
    squash<Lanes>(x[0], y, complement);
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
    exponentiate<Lanes>(e);
    const vec far = (1.0F - e) / (1.0F + e);
    vec series = square * -0.00886323552F + 0.0218694885F; // of tanh(x) / x, up to x^10
    series = series * square - 0.0539682540F;
    series = series * square + 0.133333333F;
    series = series * square - 0.333333333F;
    const vec near = size + size * square * series; // where 1 - e would lose digits
    const vec result = size < 0.35F ? near : far;
    y = x[0] < 0.0F ? -result : result;
  }
};

struct tangent_backward_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& dx, const typename floats<Lanes>::type (&in)[2]) const {
    dx = in[0] * (1.0F - in[1] * in[1]);
  }
};

struct silu_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    typename floats<Lanes>::type s, complement;
    squash<Lanes>(x[0], s, complement);
    y = x[0] * s;
  }
};

struct silu_backward_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& dx, const typename floats<Lanes>::type (&in)[2]) const {
    typename floats<Lanes>::type s, complement;
    squash<Lanes>(in[1], s, complement);
    dx = in[0] * (s * (1.0F + in[1] * complement));
  }
};

struct leaky_step {
  float slope;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    y = x[0] > 0.0F ? x[0] : x[0] * slope;
  }
};

struct leaky_backward_step {
  float slope;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& dx, const typename floats<Lanes>::type (&in)[2]) const {
    dx = in[1] > 0.0F ? in[0] : in[0] * slope;
  }
};

template <class Set, class Step>
MNEME_INLINE void apply(float* y, const float* x, std::int64_t n, const Step& step) {
  const float* const in[] = {x};
  for_vectors<Set::lanes>(y, in, n, step);
}

template <class Set, class Step>
MNEME_INLINE void apply(float* dx, const float* d, const float* known, std::int64_t n, const Step& step) {
  const float* const in[] = {d, known};
  for_vectors<Set::lanes>(dx, in, n, step);
}

template <class Set>
MNEME_INLINE void sigmoid_body(float* y, const float* x, std::int64_t n) {
  apply<Set>(y, x, n, sigmoid_step{});
}
template <class Set>
MNEME_INLINE void sigmoid_backward_body(float* dx, const float* d, const float* y, std::int64_t n) {
  apply<Set>(dx, d, y, n, sigmoid_backward_step{});
}
template <class Set>
MNEME_INLINE void tangent_body(float* y, const float* x, std::int64_t n) {
  apply<Set>(y, x, n, tangent_step{});
}
template <class Set>
MNEME_INLINE void tangent_backward_body(float* dx, const float* d, const float* y, std::int64_t n) {
  apply<Set>(dx, d, y, n, tangent_backward_step{});
}
template <class Set>
MNEME_INLINE void silu_body(float* y, const float* x, std::int64_t n) {
  apply<Set>(y, x, n, silu_step{});
}
template <class Set>
MNEME_INLINE void silu_backward_body(float* dx, const float* d, const float* x, std::int64_t n) {
  apply<Set>(dx, d, x, n, silu_backward_step{});
}
template <class Set>
MNEME_INLINE void leaky_body(float* y, const float* x, std::int64_t n, float slope) {
  apply<Set>(y, x, n, leaky_step{slope});
}
template <class Set>
MNEME_INLINE void leaky_backward_body(float* dx, const float* d, const float* x, std::int64_t n, float slope) {
  apply<Set>(dx, d, x, n, leaky_backward_step{slope});
}

MNEME_KERNEL(sigmoid, (float* y, const float* x, std::int64_t n), (y, x, n))
MNEME_KERNEL(sigmoid_backward, (float* dx, const float* d, const float* y, std::int64_t n), (dx, d, y, n))
MNEME_KERNEL(tangent, (float* y, const float* x, std::int64_t n), (y, x, n))
MNEME_KERNEL(tangent_backward, (float* dx, const float* d, const float* y, std::int64_t n), (dx, d, y, n))
MNEME_KERNEL(silu, (float* y, const float* x, std::int64_t n), (y, x, n))
MNEME_KERNEL(silu_backward, (float* dx, const float* d, const float* x, std::int64_t n), (dx, d, x, n))
MNEME_KERNEL(leaky, (float* y, const float* x, std::int64_t n, float slope), (y, x, n, slope))
MNEME_KERNEL(leaky_backward, (float* dx, const float* d, const float* x, std::int64_t n, float slope),
             (dx, d, x, n, slope))

} // namespace

void sigmoid(float* y, const float* x, std::int64_t n) { best_sigmoid(y, x, n); }

void sigmoid_backward(float* dx, const float* d, const float* y, std::int64_t n) { best_sigmoid_backward(dx, d, y, n); }

void hyperbolic_tangent(float* y, const float* x, std::int64_t n) { best_tangent(y, x, n); }

void hyperbolic_tangent_backward(float* dx, const float* d, const float* y, std::int64_t n) {
  best_tangent_backward(dx, d, y, n);
}

void silu(float* y, const float* x, std::int64_t n) { best_silu(y, x, n); }

void silu_backward(float* dx, const float* d, const float* x, std::int64_t n) { best_silu_backward(dx, d, x, n); }

void leaky_relu(float* y, const float* x, std::int64_t n, float slope) { best_leaky(y, x, n, slope); }

void leaky_relu_backward(float* dx, const float* d, const float* x, std::int64_t n, float slope) {
  best_leaky_backward(dx, d, x, n, slope);
}

} // namespace mneme::kernels
