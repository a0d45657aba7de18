/// differing_tensor: the first element in which two files of values differ (values/round_N.safetensors of a run).
#pragma once
#include "tools/study/run_difference.hpp"
namespace mneme {

struct differing_tensor {
  std::string party{}, client{};            ///< That of an upload; both "" of the model.
  std::string name{};                       ///< The tensor's: "fc1.weight".
  std::optional<differing_value> element{}; ///< Its index and both values; none where one file lacks the tensor.
  std::int64_t elements = 0;                ///< How many differ.
};

/// Uploads come in the order in which they arrived, the model last. None: all bits are equal.
[[nodiscard]] expected<std::optional<differing_tensor>> differing_tensor_of(const std::filesystem::path& first,
                                                                            const std::filesystem::path& second);

} // namespace mneme
