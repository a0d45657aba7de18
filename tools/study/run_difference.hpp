/// run_difference: finds where two runs start to differ, from their directories.
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
  delivery,   ///< Another upload arrived, or at another time or position.
  upload,     ///< Values of an upload.
  model,      ///< Equal uploads, but another model.
  evaluation, ///< Equal models, but other evaluation results.
  length      ///< One run ends earlier.
};

/// Two values of one name.
struct differing_value {
  std::string name{}, first{}, second{};
  bool operator==(const differing_value&) const = default;
};

struct first_difference {
  differing_part part = differing_part::delivery;
  std::int64_t round = 0; ///< From 1, over the whole run.
  std::string party{};    ///< That received the upload; "" where deliveries were not traced.
  std::string client{};   ///< The number of its client; "" as above, and for a model.
  std::string tensor{};   ///< "" where it is not known.
  /// Index of the element in its tensor ("[3, 0, 1]") with both values; nullopt if values were not stored.
  std::optional<differing_value> element{};
  std::int64_t elements = 0; ///< Number of differing elements of the tensor.
  std::string details{};     ///< A sentence with further information.
};

struct run_difference {
  std::string first_digest{}, second_digest{}; ///< Run digests; "" of a run without a summary.
  std::vector<differing_value> settings{};     ///< Scenario keys, without title and [checkpoint].
  std::vector<differing_value> machines{};     ///< Processor, kernels, libraries, variables.
  std::optional<first_difference> where{};     ///< nullopt if nothing recorded differs.
  bool both_traced = false;                    ///< Both runs have digests of their deliveries.
  [[nodiscard]] bool is_same() const noexcept { return !where && first_digest == second_digest; }
};

/// Reads both directories. Fails with the file name if one is missing or damaged.
[[nodiscard]] expected<run_difference> difference_of(const std::filesystem::path& first,
                                                     const std::filesystem::path& second);

/// Describes the difference in sentences.
[[nodiscard]] std::string difference_text(const run_difference& difference, const std::string& first,
                                          const std::string& second);

} // namespace mneme
