// Convolution layers and their gradients, compared with the same functions in float64, differentiated by autograd.
#include "runtime/models/convolution_layer.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t models = 2;
constexpr std::int64_t weight_offset = 3;

struct results {
  at::Tensor out, d_in, gradients; // [K, B, width after], [K, B, width before], [K, P]
};

/// Layer whose filters begin at `weight_offset`, followed by its bias, if it has one.
class subject {
public:
  explicit subject(const convolution_layer::shape& shape, std::int64_t rows = 3)
      : shape_(shape), rows_(rows), layer_(shape),
        filter_floats_(shape.kernel * shape.kernel * shape.in.channels * shape.filters),
        weights_(drawn({models, weight_offset + filter_floats_ + shape.filters}, 1)),
        in_(drawn({models, rows, shape.in.floats()}, 2)), d_out_(drawn({models, rows, layer_.width({})}, 3)) {}

  /// Compares the layer with the function: results written, and added to existing values.
  void check() {
    CAPTURE(shape_.in.height, shape_.in.width, shape_.in.channels, shape_.filters, shape_.kernel, shape_.stride,
            shape_.padding, shape_.bias_offset, rows_);
    const auto expected = by_function_in_double();
    for (const bool add : {false, true}) {
      CAPTURE(add);
      const double scale = add ? -0.25 : 1.0;
      const auto ours = by_layer(add);
      near(ours.out, expected.out);
      near(ours.d_in, add ? expected.d_in + 7.0 : expected.d_in);
      near(ours.gradients, scale * expected.gradients + (add ? 1.0 : 0.0));
    }
  }

private:
  static void near(const at::Tensor& ours, const at::Tensor& expected) {
    const double largest = std::max(1.0, expected.abs().max().item<double>());
    CHECK((ours.to(at::kDouble) - expected).abs().max().item<double>() <= 3e-6 * largest);
  }

  [[nodiscard]] std::int64_t bias_floats() const { return shape_.bias_offset >= 0 ? shape_.filters : 0; }

  results by_layer(bool add) {
    const layer_pass pass{.weights = weights_, .models = models, .rows = rows_, .memory = &memory_};
    results made{.out = at::full_like(d_out_, 7.0F),
                 .d_in = at::full_like(in_, 7.0F),
                 .gradients = at::full_like(weights_, add ? 1.0F : 0.0F)};
    at::Tensor kept;
    layer_.forward(pass, in_, made.out, kept);
    auto d_out = d_out_.clone();
    layer_.backward(pass, {in_, made.out, kept, d_out, &made.d_in, add}, {made.gradients, add ? -0.25F : 1.0F, add});
    return made;
  }

  results by_function_in_double() {
    const auto weights = weights_.to(at::kDouble).requires_grad_(true), in = in_.to(at::kDouble).requires_grad_(true);
    std::vector<at::Tensor> parameters{weights.narrow(1, weight_offset, filter_floats_)};
    std::vector<std::int64_t> offsets{weight_offset};
    if (bias_floats() > 0) {
      parameters.push_back(weights.narrow(1, shape_.bias_offset, bias_floats()));
      offsets.push_back(shape_.bias_offset);
    }
    const auto out =
        layer_.function({.parameters = parameters, .offsets = offsets, .models = models, .rows = rows_}, in);
    const auto gradients = torch::autograd::grad({out}, {in, weights}, {d_out_.to(at::kDouble)});
    return {out.detach(), gradients[0], gradients[1]};
  }

  convolution_layer::shape shape_;
  std::int64_t rows_;
  convolution_layer layer_;
  std::int64_t filter_floats_;
  at::Tensor weights_, in_, d_out_;
  kernels::scratch memory_{};
};

/// With bias and ReLU if the stride is 1.
convolution_layer::shape convolution(const image_shape& in, std::int64_t filters, std::int64_t kernel,
                                     std::int64_t stride, std::int64_t padding) {
  const bool biased = stride == 1;
  return {.in = in,
          .filters = filters,
          .kernel = kernel,
          .stride = stride,
          .padding = padding,
          .weight_offset = weight_offset,
          .bias_offset = biased ? weight_offset + kernel * kernel * in.channels * filters : -1,
          .after = biased ? activation::relu : activation::none};
}

} // namespace

TEST_CASE("convolutions of any shape and their gradients equal float64 references", "[models]") {
  at::set_num_threads(1);
  for (const std::int64_t kernel : {1, 2, 3, 5, 7})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t padding : {std::int64_t{0}, kernel / 2})
        for (const auto& [channels, filters] :
             {std::pair<std::int64_t, std::int64_t>{1, 6}, {3, 5}, {5, 1}, {17, 16}, {32, 16}})
          subject(convolution({9, 11, channels}, filters, kernel, stride, padding)).check();
}

TEST_CASE("convolutions of one image, of images smaller than the filter and of many channels equal float64 references",
          "[models]") {
  at::set_num_threads(1);
  subject(convolution({1, 1, 40}, 33, 3, 2, 1)).check();
  subject(convolution({2, 1, 3}, 5, 7, 2, 3)).check();
  subject(convolution({6, 5, 70}, 70, 3, 1, 1)).check();
  for (const std::int64_t kernel : {1, 3})
    subject(convolution({6, 5, 3}, 4, kernel, 1, 0), 1).check();
}
