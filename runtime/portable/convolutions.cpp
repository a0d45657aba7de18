#include "runtime/portable/convolutions.hpp"
#include "runtime/portable/matrix_products.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include <ATen/ATen.h>
#include <stdexcept>
namespace mneme::portable {
namespace {

// Axes: N images, G groups, C channels of the input and O of the output (of a group), h and w of a filter, L places.

using integers = std::vector<std::int64_t>;

/// What an operator is told of a convolution besides its tensors.
struct geometry {
  integers stride{}, padding{}, dilation{}, further{};
  bool transposed = false;
  std::int64_t groups = 1;
};

/// For height and width. One number stands for both; where images have one dimension, for the width, and the height
/// gets what changes nothing.
integers of_two(c10::SymIntArrayRef given, bool has_planes, std::int64_t idle) {
  integers out;
  for (const auto& value : given)
    out.push_back(value.expect_int());
  if (out.size() == 1)
    out = {has_planes ? out.front() : idle, out.front()};
  return out;
}

geometry geometry_of(const at::Tensor& input, c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                     c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef further,
                     const c10::SymInt& groups) {
  return {.stride = of_two(stride, input.dim() == 4, 1),
          .padding = of_two(padding, input.dim() == 4, 0),
          .dilation = of_two(dilation, input.dim() == 4, 1),
          .further = of_two(further, input.dim() == 4, 0),
          .transposed = transposed,
          .groups = groups.expect_int()};
}

void expect_planes(const at::Tensor& input) {
  if (input.dim() != 3 && input.dim() != 4)
    throw std::runtime_error("a convolution of " + std::to_string(input.dim() - 2) +
                             " dimensions is not portable; worker.arithmetic = \"machine\" has it");
}

/// Images and filters of one dimension as planes of height 1.
at::Tensor planes(const at::Tensor& given) { return given.dim() == 3 ? given.unsqueeze(2) : given; }

/// [C h w, L] of one image [C, H, W].
at::Tensor patches(const at::Tensor& image, const at::Tensor& filters, const geometry& with) {
  return at::im2col(image.contiguous(), {filters.size(2), filters.size(3)}, with.dilation, with.padding, with.stride);
}

/// The image [C, H, W] whose pixels are the sums of the patches' [C h w, L] that cover them.
at::Tensor covered(const at::Tensor& columns, const at::Tensor& filters, at::IntArrayRef size, const geometry& with) {
  return at::col2im(columns, {size[0], size[1]}, {filters.size(2), filters.size(3)}, with.dilation, with.padding,
                    with.stride);
}

/// Group g of the channels of an image, or of the rows of filters.
at::Tensor group(const at::Tensor& given, std::int64_t g, std::int64_t groups) {
  const auto width = given.size(0) / groups;
  return given.narrow(0, g * width, width);
}

at::Tensor as_matrix(const at::Tensor& given) { return given.reshape({given.size(0), -1}); }

/// [N, O, places] of images [N, C, H, W] with filters [O, C, h, w].
at::Tensor correlated(const at::Tensor& images, const at::Tensor& filters, const geometry& with, at::IntArrayRef size) {
  auto out = images.new_zeros({images.size(0), filters.size(0), size[0], size[1]});
  for (std::int64_t n = 0; n < images.size(0); ++n)
    for (std::int64_t g = 0; g < with.groups; ++g) {
      auto into = as_matrix(group(out[n], g, with.groups));
      multiply_matrices(as_matrix(group(filters, g, with.groups)),
                        patches(group(images[n], g, with.groups), filters, with), into);
    }
  return out;
}

/// The transpose of correlated(): [N, C, H, W] of values [N, O, places].
at::Tensor spread(const at::Tensor& values, const at::Tensor& filters, const geometry& with, at::IntArrayRef size) {
  auto out = values.new_zeros({values.size(0), filters.size(1) * with.groups, size[0], size[1]});
  for (std::int64_t n = 0; n < values.size(0); ++n)
    for (std::int64_t g = 0; g < with.groups; ++g) {
      const auto own = as_matrix(group(filters, g, with.groups));
      auto columns = values.new_empty({own.size(1), values.size(2) * values.size(3)});
      multiply_matrices(own.t(), as_matrix(group(values[n], g, with.groups)), columns);
      group(out[n], g, with.groups).copy_(covered(columns, filters, size, with));
    }
  return out;
}

/// [O, C, h, w]: the gradient of filters, from what correlated() has read and the gradient of what it gave.
at::Tensor of_filters(const at::Tensor& images, const at::Tensor& d_out, const at::Tensor& filters,
                      const geometry& with) {
  auto sum = at::zeros_like(filters, at::MemoryFormat::Contiguous);
  for (std::int64_t n = 0; n < images.size(0); ++n)
    for (std::int64_t g = 0; g < with.groups; ++g) {
      auto own = as_matrix(group(sum, g, with.groups));
      multiply_matrices(as_matrix(group(d_out[n], g, with.groups)),
                        patches(group(images[n], g, with.groups), filters, with).t(), own, 1.0, 1.0);
    }
  return sum;
}

integers size_of_result(const at::Tensor& images, const at::Tensor& filters, const geometry& with) {
  integers size;
  for (std::size_t d = 0; d < 2; ++d) {
    const auto axis = static_cast<std::int64_t>(d) + 2;
    const auto reach = with.dilation[d] * (filters.size(axis) - 1);
    size.push_back(with.transposed
                       ? (images.size(axis) - 1) * with.stride[d] - 2 * with.padding[d] + reach + 1 + with.further[d]
                       : (images.size(axis) + 2 * with.padding[d] - reach - 1) / with.stride[d] + 1);
  }
  return size;
}

at::Tensor convolved(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                     const geometry& with) {
  expect_planes(input);
  const auto images = planes(input), filters = planes(weight);
  const auto size = size_of_result(images, filters, with);
  auto out = with.transposed ? spread(images, filters, with, size) : correlated(images, filters, with, size);
  if (bias && bias->defined())
    out.add_(bias->view({1, -1, 1, 1}));
  return input.dim() == 3 ? out.squeeze(2) : out;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef further, c10::SymInt groups) {
  return convolved(input, weight, bias, geometry_of(input, stride, padding, dilation, transposed, further, groups));
}

at::Tensor convolution_of_scripts(const at::Tensor& input, const at::Tensor& weight,
                                  const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                                  c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                                  c10::SymIntArrayRef further, c10::SymInt groups, bool, bool, bool, bool) {
  return at::convolution_symint(input, weight, bias, stride, padding, dilation, transposed, further, groups);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
convolution_backward(const at::Tensor& d_out, const at::Tensor& input, const at::Tensor& weight,
                     at::OptionalSymIntArrayRef bias_sizes, c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                     c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef further, c10::SymInt groups,
                     std::array<bool, 3> needed) {
  static_cast<void>(bias_sizes);
  expect_planes(input);
  const auto with = geometry_of(input, stride, padding, dilation, transposed, further, groups);
  const auto gradient = planes(d_out), images = planes(input), filters = planes(weight);
  at::Tensor d_input, d_weight, d_bias;
  if (needed[0])
    d_input = with.transposed ? correlated(gradient, filters, with, {images.size(2), images.size(3)})
                              : spread(gradient, filters, with, {images.size(2), images.size(3)});
  if (needed[1])
    d_weight =
        with.transposed ? of_filters(gradient, images, filters, with) : of_filters(images, gradient, filters, with);
  if (needed[2])
    d_bias = gradient.sum({0, 2, 3});
  const auto as_given = [](const at::Tensor& given, const at::Tensor& like) {
    return given.defined() && like.dim() == 3 ? given.squeeze(2) : given;
  };
  return {as_given(d_input, input), as_given(d_weight, weight), d_bias};
}

} // namespace

void register_convolutions() {
  replace("aten::convolution", "", &convolution);
  replace("aten::_convolution", "", &convolution_of_scripts);
  replace("aten::convolution_backward", "", &convolution_backward);
}

} // namespace mneme::portable
