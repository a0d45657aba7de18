/// shared_data: the data sets of a sweep, each loaded once, before the processes that share it are forked.
#pragma once
#include "runtime/data/data_sources.hpp"
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace mneme {

/// Rows that are made from the seed are left to the runs: no other run has them.
class shared_data {
public:
  /// Null where the rows are made, or cannot be loaded, which the check of the points tells.
  [[nodiscard]] std::shared_ptr<const raw_data> rows_of(const scenario& settings);
  /// The digest of the rows; "" where there are none.
  [[nodiscard]] std::string digest_of(const scenario& settings);

private:
  struct data_set {
    std::shared_ptr<const raw_data> rows{};
    std::string digest{};
  };
  data_set& loaded(const scenario& settings);

  std::vector<data_source> sources_ = data_sources();
  std::map<std::string, data_set> sets_{};
  data_set none_{};
};

} // namespace mneme
