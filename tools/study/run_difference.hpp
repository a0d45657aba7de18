/// run_difference: where two runs begin to differ, from what their folders hold.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

/// What differs first between two runs, in the order in which a run decides things.
enum class differing_part : std::uint8_t {
  delivery,   ///< Another upload arrived, or at another time or place in the order.
  upload,     ///< The values of an upload.
  model,      ///< All uploads were alike so far, and the server has made another model of them.
  evaluation, ///< The models were alike, and other figures were counted on the test rows.
  length      ///< One run ends where the other goes on.
};

/// Two values of one name.
struct differing_value {
  std::string name{}, first{}, second{};
  bool operator==(const differing_value&) const = default;
};

struct first_difference {
  differing_part part = differing_part::delivery;
  std::int64_t round = 0; ///< Counted from 1 over the whole run.
  std::string party{};    ///< That received the upload; "" where deliveries were not traced.
  std::string client{};   ///< The number of its client; "" as above, and for a model.
  std::string tensor{};   ///< "" where it is not known.
  /// Index of the element in its tensor ("[3, 0, 1]") and the values there; none where values were not kept.
  std::optional<differing_value> element{};
  std::int64_t elements = 0; ///< Elements of the tensor that differ.
  std::string details{};     ///< A sentence on what else is known.
};

struct run_difference {
  std::string first_digest{}, second_digest{}; ///< Run digests; "" of a run without a summary.
  std::vector<differing_value> settings{};     ///< Keys of the scenarios, title and [checkpoint] left out.
  std::vector<differing_value> machines{};     ///< Processor, kernels, libraries, variables.
  std::optional<first_difference> where{};     ///< None: nothing differs that either has recorded.
  bool both_traced = false;                    ///< Both have digests of their deliveries.
  [[nodiscard]] bool is_same() const noexcept { return !where && first_digest == second_digest; }
};

/// Reads both folders. Fails, naming the file, where one is missing or damaged.
[[nodiscard]] expected<run_difference> difference_of(const std::filesystem::path& first,
                                                     const std::filesystem::path& second);

/// The sentences that say it, for people.
[[nodiscard]] std::string difference_text(const run_difference& difference, const std::string& first,
                                          const std::string& second);

} // namespace mneme
