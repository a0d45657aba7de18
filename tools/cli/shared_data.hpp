/// shared_data: loads each data set of a sweep once, before the processes that share it are forked.
#pragma once
#include "runtime/data/data_sources.hpp"
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace mneme {

/// Data that are generated from the seed are excluded, because only one run reads them.
class shared_data {
public:
  /// Returns null for generated data and for data that cannot be loaded. The check of the sweep's points reports data
  /// that cannot be loaded.
  [[nodiscard]] std::shared_ptr<const raw_data> rows_of(const scenario& settings);
  /// Digest of the data; "" if rows_of() is null.
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
