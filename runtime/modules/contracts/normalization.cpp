#include "runtime/modules/contracts/call_errors.hpp"
#include <fmt/format.h>
namespace mneme::contracts {

/// The composite operators check these sizes. The operators that they call do not check them, and write one statistic
/// per channel.
std::string normalization_error(const operator_call& call) {
  const auto rows = call.tensor("input");
  if (!rows.defined() || rows.dim() < 2)
    return call_error(call, fmt::format("its rows are {}; expected [B, C, ...]", shape_text(rows)));
  for (const auto* const argument : {"weight", "bias", "running_mean", "running_var"})
    if (const auto tensor = call.tensor(argument);
        tensor.defined() && (tensor.dim() != 1 || tensor.numel() != rows.size(1)))
      return call_error(call, fmt::format("{} is {} for rows {}; expected [{}]", argument, shape_text(tensor),
                                          shape_text(rows), rows.size(1)));
  if ((call.find("running_mean") == nullptr) != (call.find("running_var") == nullptr))
    return call_error(call, "it has one of running_mean and running_var; expected both or none");
  return "";
}

} // namespace mneme::contracts
