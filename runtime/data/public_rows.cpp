#include "runtime/data/public_rows.hpp"
#include "runtime/base/rng.hpp"
#include <algorithm>
#include <cmath>
#include <map>
namespace mneme {
namespace {

enum class owner : std::uint8_t { unknown, clients, everybody };

/// Decides for those file rows of the task that have no owner yet whether they are public.
void draw_owners(const dataset& train, const task_rows& task, double share, const rng_key& key,
                 std::vector<owner>& owners) {
  std::map<std::int32_t, std::vector<std::int64_t>> by_label;
  for (const auto row : task.train)
    if (const auto in_file = train.in_file(row); owners[static_cast<std::size_t>(in_file)] == owner::unknown)
      by_label[train.label(row)].push_back(in_file);
  for (auto& [label, rows] : by_label) {
    auto own = key;
    own.index = static_cast<std::uint64_t>(label);
    rng_stream(own).shuffle(std::span(rows));
    const auto open =
        std::min<std::int64_t>(std::llround(share * static_cast<double>(rows.size())), std::ssize(rows) - 1);
    for (std::int64_t i = 0; i < std::ssize(rows); ++i)
      owners[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])] =
          i < open ? owner::everybody : owner::clients;
  }
}

} // namespace

void hold_out_public_rows(const scenario& from, const dataset& train, std::vector<task_rows>& tasks) {
  if (from.partition.public_share == 0.0)
    return;
  std::vector<owner> owners(static_cast<std::size_t>(train.files_rows()), owner::unknown);
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    auto& task = tasks[t];
    draw_owners(train, task, from.partition.public_share,
                key_for({.seed = from.data_seed(), .task = {t}}, purpose::public_rows), owners);
    const auto held = std::stable_partition(task.train.begin(), task.train.end(), [&](std::int64_t row) {
      return owners[static_cast<std::size_t>(train.in_file(row))] == owner::clients;
    });
    task.public_rows.assign(held, task.train.end());
    task.train.erase(held, task.train.end());
  }
}

} // namespace mneme
