#include "runtime/modules/contracts/call_errors.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <optional>
namespace mneme::contracts {
namespace {

double product_of(const std::vector<std::int64_t>& numbers) {
  double product = 1.0;
  for (const auto number : numbers)
    product *= static_cast<double>(number);
  return product;
}

/// Elements of an expanded tensor; a size of -1 keeps the axis.
double expanded_numbers(const operator_call& call) {
  const auto tensor = call.tensor("self");
  const auto sizes = call.integers("size");
  const auto first = static_cast<std::int64_t>(sizes.size()) - (tensor.defined() ? tensor.dim() : 0); // new axes
  double product = 1.0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i) - first;
    const bool is_kept = sizes[i] == -1 && tensor.defined() && axis >= 0 && axis < tensor.dim();
    product *= static_cast<double>(is_kept ? tensor.size(axis) : sizes[i]);
  }
  return product;
}

std::optional<double> scalar_of(const operator_call& call, std::string_view argument) {
  const auto* const value = call.find(argument);
  return value && value->isScalar() ? std::optional(value->toScalar().toDouble()) : std::nullopt;
}

/// Elements of aten::arange. Some overloads pass numbers as 0-dimensional tensors.
double range_numbers(const operator_call& call) {
  const auto start = scalar_of(call, "start").value_or(0.0), step = scalar_of(call, "step").value_or(1.0);
  const auto end = scalar_of(call, "end");
  return end && step != 0.0 ? std::ceil((*end - start) / step) : 0.0;
}

double one_hot_numbers(const operator_call& call) {
  const auto labels = call.tensor("self");
  if (!labels.defined() || labels.numel() == 0 || !at::isIntegralType(labels.scalar_type(), false))
    return 0.0;
  const auto stated = call.integer("num_classes").value_or(-1);
  const auto classes = stated >= 0 ? static_cast<double>(stated) : 1.0 + labels.max().to(at::kDouble).item<double>();
  return static_cast<double>(labels.numel()) * classes;
}

/// Elements of the result tensor.
double result_numbers(const operator_call& call) {
  const auto& name = call.name();
  const auto own = call.tensor("self");
  const auto own_numbers = own.defined() ? static_cast<double>(own.numel()) : 1.0;
  if (name == "aten::repeat" || name == "aten::tile")
    return own_numbers * product_of(call.integers(name == "aten::repeat" ? "repeats" : "dims"));
  if (name == "aten::expand" || name == "aten::broadcast_to")
    return expanded_numbers(call);
  if (name == "aten::arange")
    return range_numbers(call);
  if (name == "aten::linspace" || name == "aten::logspace")
    return static_cast<double>(call.integer("steps").value_or(0));
  if (name == "aten::eye") {
    const auto rows = static_cast<double>(call.integer("n").value_or(0));
    return rows * (call.integer("m") ? static_cast<double>(*call.integer("m")) : rows);
  }
  return name == "aten::one_hot" ? one_hot_numbers(call) : product_of(call.integers("size"));
}

double parts_of_axis(double size, std::int64_t each) {
  return each > 0 ? std::ceil(size / static_cast<double>(each)) : 1;
}

/// The number of tensors that a call splits its input into. Returns 0 for an invalid axis, which LibTorch rejects.
double parts_of_call(const operator_call& call) {
  const auto tensor = call.tensor("self");
  const auto axis = call.integer("dim").value_or(0);
  if (!tensor.defined() || axis < -tensor.dim() || axis >= tensor.dim())
    return 0.0;
  const auto size = static_cast<double>(tensor.size(axis));
  const auto& name = call.name();
  if (name == "aten::unbind")
    return size;
  if (name == "aten::chunk")
    return std::min(size, static_cast<double>(call.integer("chunks").value_or(0)));
  if (name == "aten::tensor_split") {
    const auto sections = call.integer("sections");
    return sections ? static_cast<double>(*sections) : static_cast<double>(call.integers("indices").size()) + 1.0;
  }
  const auto* const lengths = call.find("split_size") ? "split_size" : "split_sizes";
  const auto* const value = call.find(lengths);
  return value && value->isInt() ? parts_of_axis(size, value->toInt())
                                 : static_cast<double>(call.integers(lengths).size());
}

} // namespace

/// LibTorch checks large sizes only when it allocates memory, and never for views.
std::string result_size_error(const operator_call& call) {
  const auto numbers = result_numbers(call);
  if (!(std::abs(numbers) <= static_cast<double>(call_limits::numbers_max)))
    return call_error(call, fmt::format("its result would have {:.0f} numbers; expected at most {}", numbers,
                                        call_limits::numbers_max));
  return "";
}

std::string parts_error(const operator_call& call) {
  const auto parts = parts_of_call(call);
  return parts <= static_cast<double>(call_limits::parts_max)
             ? ""
             : call_error(call, fmt::format("it would cut {} into {:.0f} tensors; expected at most {}",
                                            shape_text(call.tensor("self")), parts, call_limits::parts_max));
}

std::int64_t parts_bytes(const operator_call& call) {
  constexpr double header_bytes = 512.0; // size of a tensor header and its autograd metadata
  return static_cast<std::int64_t>(header_bytes *
                                   std::min(parts_of_call(call), static_cast<double>(call_limits::parts_max)));
}

} // namespace mneme::contracts
