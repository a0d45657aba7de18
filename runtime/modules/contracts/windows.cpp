#include "runtime/modules/contracts/call_errors.hpp"
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme::contracts {
namespace {

/// Returns an error for the first of these arguments that has a value outside of [-most, most], or "".
std::string excess_of(const operator_call& call, std::initializer_list<const char*> arguments, std::int64_t most) {
  for (const auto* const argument : arguments) {
    const auto numbers = call.integers(argument);
    for (const auto number : numbers)
      if (number > most || number < -most)
        return call_error(call,
                          fmt::format("{} is [{}]; expected at most {}", argument, fmt::join(numbers, ", "), most));
  }
  return "";
}

} // namespace

/// oneDNN generates unrolled code for strides: a stride of 65,537 takes a minute to compile, and 2^30 crashes.
std::string convolution_error(const operator_call& call) {
  return excess_of(call, {"stride", "padding", "dilation", "output_padding"}, call_limits::step_max);
}

/// Larger values overflow in the kernels. Also, the time of max_pool1d is proportional to the window.
std::string pooling_error(const operator_call& call) {
  return excess_of(call, {"kernel_size", "stride", "padding", "dilation", "output_size"}, call_limits::window_max);
}

/// Rejects sizes whose sum with the padding overflows: replication_pad2d would read out of bounds.
std::string padding_error(const operator_call& call) {
  const auto* const argument = call.find("pad") ? "pad" : "padding";
  if (auto error = excess_of(call, {argument}, call_limits::window_max); !error.empty())
    return error;
  const auto rows = call.tensor("self");
  const auto numbers = call.integers(argument);
  for (std::size_t i = 0; i < numbers.size() && rows.defined(); ++i) {
    const auto axis = static_cast<std::int64_t>(i / 2) + 1; // padding is listed from the last axis backwards
    if (axis > rows.dim() || -numbers[i] > rows.size(-axis))
      return call_error(call, fmt::format("padding is [{}] for {}; expected no more axes, and none cut beyond its size",
                                          fmt::join(numbers, ", "), shape_text(rows)));
  }
  return "";
}

/// The antialiasing kernels allocate weights in proportion to the inverse scale, and use unchecked indices.
std::string resizing_error(const operator_call& call) {
  if (auto error = excess_of(call, {"output_size"}, call_limits::window_max); !error.empty())
    return error;
  for (const auto* const argument : {"scale_factors", "scales", "scales_d", "scales_h", "scales_w"})
    for (const auto scale : call.numbers(argument))
      if (!(scale >= 1.0 / call_limits::scale_max && scale <= call_limits::scale_max))
        return call_error(call, fmt::format("{} has {}; expected 1/{:.0f} to {:.0f}", argument, scale,
                                            call_limits::scale_max, call_limits::scale_max));
  return "";
}

/// The kernel does not reject invalid mode numbers.
std::string sampling_error(const operator_call& call) {
  for (const auto* const argument : {"interpolation_mode", "padding_mode"})
    if (const auto mode = call.integer(argument).value_or(0); mode < 0 || mode > 2)
      return call_error(call, fmt::format("{} is {}; expected 0 to 2", argument, mode));
  return "";
}

} // namespace mneme::contracts
