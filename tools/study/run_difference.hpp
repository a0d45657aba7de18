/// run_difference: finds the point at which two runs start to differ, from their directories.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

/// Kind of the first difference, in the order of a run's decisions.
enum class differing_part : std::uint8_t {
  delivery,   ///< Other uploads arrived, or the same uploads at other times or positions.
  upload,     ///< The values of an upload differ.
  model,      ///< The uploads are equal, but the models differ.
  evaluation, ///< The models are equal, but the evaluation results differ.
  length      ///< One run ends earlier.
};

/// Two values of one key, fact or element.
struct differing_value {
  std::string name{}, first{}, second{};
  bool operator==(const differing_value&) const = default;
};

struct first_difference {
  differing_part part = differing_part::delivery;
  std::int64_t round = 0; ///< Counted from 1 over the whole run.
  std::string party{};    ///< Party that received the upload; "" if deliveries were not traced.
  std::string client{};   ///< Number of the client that sent it; "" if deliveries were not traced, and for a model.
  std::string tensor{};   ///< "" where it is not known.
  /// Index of the element in its tensor, such as "[3, 0, 1]", with both values; nullopt if values were not stored.
  std::optional<differing_value> element{};
  std::int64_t elements = 0; ///< Number of differing elements of the tensor.
  std::string details{};     ///< Additional information in one sentence.
};

struct run_difference {
  std::string first_digest{}, second_digest{}; ///< Run digests; "" for a run without a summary.
  std::vector<differing_value> settings{};     ///< Scenario keys, without title and [checkpoint].
  std::vector<differing_value> machines{};     ///< Processor, kernels, libraries and environment variables.
  std::optional<first_difference> where{};     ///< nullopt if all records are equal.
  bool both_traced = false;                    ///< true: both runs recorded digests of their deliveries.
  [[nodiscard]] bool is_same() const noexcept { return !where && first_digest == second_digest; }
};

/// Reads both directories. Fails with the file name if one is missing or damaged.
[[nodiscard]] expected<run_difference> difference_of(const std::filesystem::path& first,
                                                     const std::filesystem::path& second);

/// Describes the difference in sentences.
[[nodiscard]] std::string difference_text(const run_difference& difference, const std::string& first,
                                          const std::string& second);

} // namespace mneme
