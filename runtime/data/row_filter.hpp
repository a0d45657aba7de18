/// row_filter: selects rows of a file within the limits train_rows and train_per_class, or test_rows and
/// test_per_class.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <cstdint>
#include <map>
#include <utility>
namespace mneme {

/// Keeps the first `rows` rows, and among them the first `per_class` of each class; 0: all.
struct row_limits {
  std::int64_t rows = 0, per_class = 0;
  bool operator==(const row_limits&) const = default;
};
/// The limits on training rows in the scenario.
[[nodiscard]] inline row_limits train_limits(const data_section& data) {
  return {.rows = data.train_rows, .per_class = data.train_per_class};
}
/// The limits on test rows in the scenario.
[[nodiscard]] inline row_limits test_limits(const data_section& data) {
  return {.rows = data.test_rows, .per_class = data.test_per_class};
}

/// Filters rows in file order. The limits apply to each domain separately, as if each domain were a file.
class row_filter {
public:
  /// @param classes number of classes of the data set
  row_filter(row_limits limits, std::int64_t classes) : limits_(limits), classes_(classes) {}

  /// Counts the next row. Returns whether to keep it.
  [[nodiscard]] bool keep(std::int32_t label, std::int32_t domain = 0) {
    if (limits_.rows > 0 && seen_[domain]++ >= limits_.rows)
      return false;
    if (limits_.per_class == 0)
      return true;
    const auto kept = ++kept_[{domain, label}];
    full_classes_ += kept == limits_.per_class;
    return kept <= limits_.per_class;
  }
  /// True if no later row will be kept, so that reading a file with a single domain can stop.
  [[nodiscard]] bool done() const {
    const bool enough = limits_.rows > 0 && seen_.contains(0) && seen_.at(0) >= limits_.rows;
    return enough || (limits_.per_class > 0 && full_classes_ == classes_);
  }

private:
  row_limits limits_;
  std::int64_t classes_;
  std::map<std::int32_t, std::int64_t> seen_{};                          // rows per domain
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> kept_{}; // kept rows per domain and class
  std::int64_t full_classes_ = 0;
};

} // namespace mneme
