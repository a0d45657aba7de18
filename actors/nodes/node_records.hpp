/// node_records: records of a run's nodes for summary.json.
#pragma once
#include "runtime/results/run_directory.hpp"
#include <mutex>
namespace mneme {

/// Written by the placement actor, read by the recorder at the end of the run. Thread-safe.
class node_records {
public:
  template <class Change>
  void change(std::size_t node, Change change) {
    const std::lock_guard hold(mutex_);
    if (node >= records_.size()) // the node joined during the run and has no record yet
      records_.resize(node + 1);
    change(records_[node]);
  }
  /// Records that a node has returned wrong results, so that the run's checkpoints are removed.
  void mark_untrusted() {
    const std::lock_guard hold(mutex_);
    results_trusted_ = false;
  }
  [[nodiscard]] bool results_trusted() const {
    const std::lock_guard hold(mutex_);
    return results_trusted_;
  }
  [[nodiscard]] std::vector<node_record> all() const {
    const std::lock_guard hold(mutex_);
    return records_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<node_record> records_;
  bool results_trusted_ = true;
};

} // namespace mneme
