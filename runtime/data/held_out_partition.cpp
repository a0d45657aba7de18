#include "runtime/data/held_out_partition.hpp"
#include "runtime/base/check.hpp"
#include <cmath>
#include <numeric>
namespace mneme {
namespace {

template <class T>
std::vector<T> elements_where(const std::vector<T>& values, const std::vector<bool>& chosen, bool wanted) {
  std::vector<T> kept;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (chosen[i] == wanted)
      kept.push_back(values[i]);
  return kept;
}

} // namespace

held_out_partition::held_out_partition(std::shared_ptr<const partition> all, double share, std::uint64_t seed)
    : all_(std::move(all)), share_(share), seed_(seed) {
  MNEME_CHECK(0.0 < share && share < 1.0, share);
}

std::int64_t held_out_partition::held_out(std::int64_t rows) const {
  // The tolerance ensures that a share of 0.1 of 30 rows is 3 rows.
  return static_cast<std::int64_t>(std::floor(share_ * static_cast<double>(rows) + 1e-9));
}

/// One entry per row of the client; true if the row is held out.
std::vector<bool> held_out_partition::draw_held_out(client_id client, task_id task, std::int64_t rows) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  rng_stream(key_for({.seed = seed_, .client = client, .task = task}, purpose::held_out_rows))
      .shuffle(std::span(order));
  std::vector<bool> chosen(order.size());
  for (std::int64_t i = 0; i < held_out(rows); ++i)
    chosen[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  return chosen;
}

std::int64_t held_out_partition::size(client_id client, task_id task) const {
  const auto rows = all_->size(client, task);
  return rows - held_out(rows);
}

std::vector<std::int64_t> held_out_partition::rows(client_id client, task_id task) const {
  const auto all = all_->rows(client, task);
  return elements_where(all, draw_held_out(client, task, std::ssize(all)), false);
}

std::vector<std::int32_t> held_out_partition::marks(client_id client, task_id task) const {
  const auto all = all_->marks(client, task);
  return elements_where(all, draw_held_out(client, task, std::ssize(all)), false);
}

std::vector<std::int64_t> held_out_partition::test_rows(client_id client, task_id task) const {
  const auto all = all_->rows(client, task);
  return elements_where(all, draw_held_out(client, task, std::ssize(all)), true);
}

} // namespace mneme
