#include "runtime/portable/convolutions.hpp"
#include "runtime/portable/matrix_products.hpp"
#include "runtime/portable/replaced_kernels.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <stdexcept>
namespace mneme::portable {
namespace {

// Axes: N images, G groups, C input channels and O output channels of a group, filters of h x w, L pixels of a result.

using integers = std::vector<std::int64_t>;

/// Parameters of a convolution, in pixels.
struct geometry {
  integers stride{}, padding{}, dilation{}, further{};
  bool transposed = false;
  std::int64_t groups = 1;
};

/// Values for height and width. A single value applies to both. For one-dimensional images it applies to the width, and
/// the height gets `idle`, which has no effect.
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
                             " dimensions is not portable; use worker.arithmetic = \"machine\"");
}

/// Gives one-dimensional images and filters an axis of height 1.
at::Tensor planes(const at::Tensor& given) { return given.dim() == 3 ? given.unsqueeze(2) : given; }

// Padded images are channels last, so that the values that a filter reads in one row are contiguous.

/// Zeros for padded images of sizes [N, C, H, W]: [N, H + 2 padding, W + 2 padding, C].
at::Tensor zeros_around(at::IntArrayRef sizes, const geometry& with, const at::Tensor& like) {
  return at::zeros({sizes[0], sizes[2] + 2 * with.padding[0], sizes[3] + 2 * with.padding[1], sizes[1]},
                   like.options());
}

/// View of the images inside the padding of zeros_around(), [N, C, H, W].
at::Tensor inner_images(const at::Tensor& padded, const geometry& with) {
  return padded.narrow(1, with.padding[0], padded.size(1) - 2 * with.padding[0])
      .narrow(2, with.padding[1], padded.size(2) - 2 * with.padding[1])
      .permute({0, 3, 1, 2});
}

/// Splits a convolution into matrix products, each for several images and one group of channels.
struct convolution_parts {
  const at::Tensor& filters; // [O of all groups, C, h, w]
  const geometry& with;
  std::int64_t height, width; // size of the result of correlated(), in pixels

  [[nodiscard]] std::int64_t places() const { return height * width; }
  [[nodiscard]] std::int64_t terms() const { return filters.size(1) * filters.size(2) * filters.size(3); }
  [[nodiscard]] std::int64_t group_width() const { return filters.size(0) / with.groups; }

  /// Returns the filters of group g as rows, [O, h w C].
  [[nodiscard]] at::Tensor filter_rows(std::int64_t g) const {
    return filters.narrow(0, g * group_width(), group_width()).permute({0, 2, 3, 1}).reshape({group_width(), terms()});
  }
  /// View of the filters' windows [n, height, width, h, w, C] in padded images [n, .., C of all groups].
  [[nodiscard]] at::Tensor windows(const at::Tensor& padded, std::int64_t g) const {
    const auto own = padded.narrow(3, g * filters.size(1), filters.size(1));
    const auto by = own.strides();
    return own.as_strided({own.size(0), height, width, filters.size(2), filters.size(3), own.size(3)},
                          {by[0], with.stride[0] * by[1], with.stride[1] * by[2], with.dilation[0] * by[1],
                           with.dilation[1] * by[2], by[3]});
  }
  /// Returns the windows as rows, [n L, h w C].
  [[nodiscard]] at::Tensor patches(const at::Tensor& padded, std::int64_t g) const {
    return windows(padded, g).reshape({padded.size(0) * places(), terms()});
  }
  /// Returns the values of group g as rows, [n L, O], of values [n, O of all groups, height, width].
  [[nodiscard]] at::Tensor value_rows(const at::Tensor& values, std::int64_t g) const {
    return values.narrow(1, g * group_width(), group_width()).permute({0, 2, 3, 1}).reshape({-1, group_width()});
  }
  /// Calls act(first image, number of images, group) for each product; the patches of a call fit into a cache.
  template <class Act>
  void for_each_product(std::int64_t images, Act act) const {
    constexpr std::int64_t patch_floats_max = std::int64_t{1} << 18U;
    const auto block = std::max<std::int64_t>(patch_floats_max / std::max<std::int64_t>(places() * terms(), 1), 1);
    for (std::int64_t first = 0; first < images; first += block)
      for (std::int64_t g = 0; g < with.groups; ++g)
        act(first, std::min(block, images - first), g);
  }
};

/// Correlates images [N, C, H, W] with filters [O, C, h, w]; the result is [N, O, height, width].
at::Tensor correlated(const at::Tensor& images, const at::Tensor& filters, const geometry& with, at::IntArrayRef size) {
  const convolution_parts parts{filters, with, size[0], size[1]};
  const auto padded = zeros_around(images.sizes(), with, images);
  inner_images(padded, with).copy_(images);
  const auto out = at::empty({images.size(0), size[0], size[1], filters.size(0)}, images.options());
  parts.for_each_product(images.size(0), [&](std::int64_t first, std::int64_t count, std::int64_t g) {
    multiply_matrices(
        parts.patches(padded.narrow(0, first, count), g), parts.filter_rows(g).t(),
        out.narrow(0, first, count).flatten(0, 2).narrow(1, g * parts.group_width(), parts.group_width()));
  });
  return out.permute({0, 3, 1, 2});
}

/// The transpose of correlated(). It maps values [N, O, height, width] to images [N, C, H, W].
at::Tensor spread(const at::Tensor& values, const at::Tensor& filters, const geometry& with, at::IntArrayRef size) {
  const convolution_parts parts{filters, with, values.size(2), values.size(3)};
  const auto padded = zeros_around({values.size(0), filters.size(1) * with.groups, size[0], size[1]}, with, values);
  parts.for_each_product(values.size(0), [&](std::int64_t first, std::int64_t count, std::int64_t g) {
    const auto targets = parts.windows(padded.narrow(0, first, count), g);
    const auto columns = at::empty(targets.sizes(), values.options());
    multiply_matrices(parts.value_rows(values.narrow(0, first, count), g), parts.filter_rows(g),
                      columns.view({count * parts.places(), parts.terms()}));
    for (std::int64_t i = 0; i < filters.size(2); ++i) // the windows of a single tap do not overlap
      for (std::int64_t j = 0; j < filters.size(3); ++j)
        targets.select(3, i).select(3, j).add_(columns.select(3, i).select(3, j));
  });
  return inner_images(padded, with);
}

/// Gradient [O, C, h, w] of the filters in correlated(). @param images input of correlated() @param d_out gradient of
/// its result
at::Tensor of_filters(const at::Tensor& images, const at::Tensor& d_out, const at::Tensor& filters,
                      const geometry& with) {
  const convolution_parts parts{filters, with, d_out.size(2), d_out.size(3)};
  const auto padded = zeros_around(images.sizes(), with, images);
  inner_images(padded, with).copy_(images);
  const auto sums = at::zeros({with.groups, parts.terms(), parts.group_width()}, filters.options());
  parts.for_each_product(images.size(0), [&](std::int64_t first, std::int64_t count, std::int64_t g) {
    multiply_matrices(parts.patches(padded.narrow(0, first, count), g).t(),
                      parts.value_rows(d_out.narrow(0, first, count), g), sums[g], 1.0, 1.0);
  });
  return sums.view({with.groups, filters.size(2), filters.size(3), filters.size(1), parts.group_width()})
      .permute({0, 4, 3, 1, 2})
      .reshape(filters.sizes());
}

integers size_of_result(const at::Tensor& images, const at::Tensor& filters, const geometry& with) {
  if (with.stride[0] < 1 || with.stride[1] < 1)
    throw std::runtime_error(c10::str("a convolution with stride ", with.stride, " is impossible"));
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

/// Throws std::runtime_error unless the shapes are consistent. LibTorch's operator, which is replaced, does the same.
void check_shapes(const at::Tensor& images, const at::Tensor& filters, const geometry& with, const integers& size) {
  const auto all_at_least = [](const integers& values, std::int64_t least) {
    return std::all_of(values.begin(), values.end(), [=](std::int64_t value) { return value >= least; });
  };
  const bool is_valid = with.groups > 0 && filters.dim() == 4 && filters.size(0) % with.groups == 0 &&
                        images.size(1) == (with.transposed ? filters.size(0) : filters.size(1) * with.groups) &&
                        all_at_least(with.dilation, 1) && all_at_least(with.padding, 0) && all_at_least(size, 1);
  if (!is_valid)
    throw std::runtime_error(c10::str("a convolution of images ", images.sizes(), " with filters ", filters.sizes(),
                                      ", padding ", with.padding, ", dilation ", with.dilation, " and ", with.groups,
                                      " groups is impossible"));
}

at::Tensor convolved(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                     const geometry& with) {
  expect_planes(input);
  const auto images = planes(input), filters = planes(weight);
  const auto size = size_of_result(images, filters, with);
  check_shapes(images, filters, with, size);
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
  check_shapes(images, filters, with, size_of_result(images, filters, with));
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
