/// held_out_partition: a partition whose clients keep a share of their training rows for tests of their own models.
#pragma once
#include "runtime/data/partition.hpp"
namespace mneme {

/// Of the n rows of a client in a task, floor(share * n) are held out, drawn by (seed, client, task). If several
/// clients have the same row (partition.kind "class-share", "sampled"), each of them draws independently.
class held_out_partition final : public partition {
public:
  /// @param share in (0, 1)
  held_out_partition(std::shared_ptr<const partition> all, double share, std::uint64_t seed);
  [[nodiscard]] std::int64_t size(client_id client, task_id task) const override;
  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override;
  [[nodiscard]] std::vector<std::int32_t> marks(client_id client, task_id task) const override;
  [[nodiscard]] std::int64_t drawn_rows() const override { return all_->drawn_rows(); }
  /// The rows that the client does not train on, ascending.
  [[nodiscard]] std::vector<std::int64_t> test_rows(client_id client, task_id task) const;

private:
  [[nodiscard]] std::int64_t held_out(std::int64_t rows) const;
  [[nodiscard]] std::vector<bool> draw_held_out(client_id client, task_id task, std::int64_t rows) const;

  std::shared_ptr<const partition> all_;
  double share_;
  std::uint64_t seed_;
};

} // namespace mneme
