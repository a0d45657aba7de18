/// differing_tensor: finds the first element in which two value files (values/round_N.safetensors) differ.
#pragma once
#include "tools/study/run_difference.hpp"
namespace mneme {

struct differing_tensor {
  std::string party{}, client{};            ///< That of an upload; both "" of the model.
  std::string name{};                       ///< The tensor's: "fc1.weight".
  std::optional<differing_value> element{}; ///< Index and both values; nullopt if one file lacks the tensor.
  std::int64_t elements = 0;                ///< Number of differing elements.
};

/// Compares uploads in order of arrival, then the model. Returns nullopt if all bits are equal; fails if a file cannot
/// be read.
[[nodiscard]] expected<std::optional<differing_tensor>> differing_tensor_of(const std::filesystem::path& first,
                                                                            const std::filesystem::path& second);

} // namespace mneme
