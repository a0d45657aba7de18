/// differing_tensor: finds the first element in which two value files (values/round_N.safetensors) differ.
#pragma once
#include "tools/study/run_difference.hpp"
namespace mneme {

struct differing_tensor {
  std::string party{}, client{};            ///< Receiver and sender of the upload; both "" for the model.
  std::string name{};                       ///< Name of the tensor, such as "fc1.weight".
  std::optional<differing_value> element{}; ///< Index and both values; nullopt if one file lacks the tensor.
  std::int64_t elements = 0;                ///< Number of differing elements.
};

/// Compares uploads in order of arrival, then the model. Returns nullopt if all bits are equal; fails if a file cannot
/// be read.
[[nodiscard]] expected<std::optional<differing_tensor>> differing_tensor_of(const std::filesystem::path& first,
                                                                            const std::filesystem::path& second);

} // namespace mneme
