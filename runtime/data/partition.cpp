#include "runtime/data/partition.hpp"
#include "runtime/base/check.hpp"
#include "runtime/data/partition_kinds.hpp"
#include <algorithm>
#include <utility>
namespace mneme {
namespace {

/// The rows of one task, grouped by client: client c owns [first_[c], first_[c + 1]). Rows are stored as 32-bit offsets
/// from the task's first row.
class stored_task {
public:
  /// @param dealt owner of each row @param rows the task's rows, ascending
  stored_task(const owners& dealt, std::uint32_t clients, const std::vector<std::int64_t>& rows)
      : first_(std::size_t{clients} + 1), base_(rows.empty() ? 0 : rows.front()) {
    MNEME_CHECK(dealt.size() == rows.size() && (rows.empty() || rows.back() - base_ < no_client), dealt.size(),
                rows.size());
    for (const std::uint32_t owner : dealt)
      if (owner != no_client)
        ++first_[owner + 1];
    for (std::size_t c = 1; c < first_.size(); ++c)
      first_[c] += first_[c - 1];
    distances_.resize(first_.back());
    auto next = first_; // a counting sort is stable, so rows stay ascending
    for (row_position position = 0; position < dealt.size(); ++position)
      if (dealt[position] != no_client)
        distances_[next[dealt[position]]++] = static_cast<std::uint32_t>(rows[position] - base_);
  }
  [[nodiscard]] std::int64_t size(client_id client) const { return std::ssize(held(client)); }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id client) const {
    const auto mine = held(client);
    std::vector<std::int64_t> rows(mine.size());
    std::transform(mine.begin(), mine.end(), rows.begin(), [&](std::uint32_t distance) { return base_ + distance; });
    return rows;
  }

private:
  [[nodiscard]] std::span<const std::uint32_t> held(client_id client) const {
    MNEME_CHECK(std::size_t{client.value} + 1 < first_.size(), client.value, first_.size());
    return std::span(distances_).subspan(first_[client.value], first_[client.value + 1] - first_[client.value]);
  }

  std::vector<row_position> first_;
  std::vector<std::uint32_t> distances_;
  std::int64_t base_ = 0; // first row of the task
};

/// Partitions in which a row of a task has at most one owner.
class stored_partition final : public partition {
public:
  explicit stored_partition(std::vector<stored_task> split, std::int64_t drawn_rows = 0)
      : split_(std::move(split)), drawn_rows_(drawn_rows) {}

  [[nodiscard]] std::int64_t size(client_id client, task_id task) const override {
    return split_.at(task.value).size(client);
  }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override {
    return split_.at(task.value).rows(client);
  }
  [[nodiscard]] std::int64_t drawn_rows() const override { return drawn_rows_; }

private:
  std::vector<stored_task> split_;
  std::int64_t drawn_rows_;
};

expected<owners> split(const task_split& task, const scenario& from) {
  switch (task.how.kind) {
  case partition_kind::iid:
    return split_iid(task);
  case partition_kind::balanced:
    return split_balanced(task);
  case partition_kind::shards:
    return split_shards(task, from.where("partition.shards_per_client"));
  case partition_kind::dirichlet:
    return split_dirichlet(task);
  case partition_kind::dirichlet_capped:
    return split_dirichlet_capped(task, from.where("partition.beta"));
  case partition_kind::class_share:
  case partition_kind::sampled:
  case partition_kind::file:
    break;
  }
  MNEME_CHECK(!"a kind that splits task by task", static_cast<int>(task.how.kind));
  return owners{};
}

/// Splits the tasks one by one, so that the owners of only one task are in memory.
expected<std::vector<stored_task>> draw_split(const scenario& from, const task_stream& tasks,
                                              const enrolled_clients& enrolled) {
  const auto clients = static_cast<std::uint32_t>(from.clients.count);
  const bool some = from.partition.over_enrolled && enrolled;
  std::vector<stored_task> stored;
  for (std::uint32_t t = 0; t < tasks.tasks.size(); ++t) {
    const auto sharers = some ? enrolled({t}) : std::vector<std::uint32_t>{};
    if (some && sharers.empty())
      return failed(from.where("partition.over"), "partition.over = \"enrolled\", and no client is enrolled in task " +
                                                      std::to_string(t + 1) +
                                                      "; expected at least one: see [enrolment]");
    auto owned = split({.how = from.partition,
                        .clients = some ? static_cast<std::uint32_t>(sharers.size()) : clients,
                        .by_class = positions_by_class(tasks, {t}),
                        .rows = tasks.tasks[t].train.size(),
                        .key = split_key(from, purpose::partition, {t}),
                        .task_name = "task " + std::to_string(t + 1)},
                       from);
    if (!owned)
      return tl::unexpected(owned.error());
    for (auto& owner : *owned)
      if (some && owner != no_client)
        owner = sharers[owner];
    stored.emplace_back(*owned, clients, tasks.tasks[t].train);
  }
  return stored;
}

/// A stored partition with an additional number for each row, from a column of partition.file.
class marked_partition final : public partition {
public:
  marked_partition(std::vector<stored_task> split, std::vector<std::vector<std::int32_t>> marks,
                   std::int64_t drawn_rows, std::shared_ptr<const task_stream> tasks)
      : split_(std::move(split)), marks_(std::move(marks)), drawn_rows_(drawn_rows), tasks_(std::move(tasks)) {}

  [[nodiscard]] std::int64_t size(client_id client, task_id task) const override {
    return split_.at(task.value).size(client);
  }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override {
    return split_.at(task.value).rows(client);
  }
  [[nodiscard]] std::vector<std::int32_t> marks(client_id client, task_id task) const override {
    const auto& values = tasks_->tasks.at(task.value).train;
    std::vector<std::int32_t> mine;
    for (const auto row : rows(client, task)) {
      const auto position = std::lower_bound(values.begin(), values.end(), row) - values.begin();
      mine.push_back(marks_.at(task.value)[static_cast<std::size_t>(position)]);
    }
    return mine;
  }
  [[nodiscard]] std::int64_t drawn_rows() const override { return drawn_rows_; }

private:
  std::vector<stored_task> split_;
  std::vector<std::vector<std::int32_t>> marks_; // indexed by task and position
  std::int64_t drawn_rows_;
  std::shared_ptr<const task_stream> tasks_;
};

expected<std::shared_ptr<const partition>>
partition_of_file(const scenario& from, std::shared_ptr<const task_stream> tasks, const partition_column_spec& marks) {
  auto read = read_partition_file(from, *tasks, marks);
  if (!read)
    return tl::unexpected(read.error());
  std::vector<stored_task> stored;
  for (std::size_t t = 0; t < read->owned.size(); ++t)
    stored.emplace_back(read->owned[t], static_cast<std::uint32_t>(from.clients.count), tasks->tasks[t].train);
  if (read->marks.empty())
    return std::make_shared<const stored_partition>(std::move(stored), read->drawn_rows);
  return std::make_shared<const marked_partition>(std::move(stored), std::move(read->marks), read->drawn_rows,
                                                  std::move(tasks));
}

} // namespace

std::vector<std::vector<row_position>> positions_by_class(const task_stream& tasks, task_id task) {
  const auto& classes = tasks.tasks.at(task.value).classes;
  const auto& train = tasks.tasks.at(task.value).train;
  std::vector<std::vector<row_position>> positions(static_cast<std::size_t>(classes.size()));
  for (row_position position = 0; position < train.size(); ++position)
    positions.at(static_cast<std::size_t>(tasks.train->label(train[position]) - classes.low)).push_back(position);
  return positions;
}

rng_key split_key(const scenario& from, purpose purpose_id, task_id task) {
  return key_for({.seed = from.data_seed(), .task = from.partition.per_run_seed ? task_id{} : task}, purpose_id);
}

expected<std::shared_ptr<const partition>> make_partition(const scenario& from,
                                                          std::shared_ptr<const task_stream> tasks,
                                                          const partition_column_spec& marks,
                                                          const enrolled_clients& enrolled) {
  MNEME_CHECK(from.clients.count > 0 && from.clients.count < no_client, from.clients.count);
  for (const auto& task : tasks->tasks)
    MNEME_CHECK(task.train.size() < no_client, task.train.size());
  if (from.partition.kind == partition_kind::class_share)
    return make_class_share(from, std::move(tasks));
  if (from.partition.kind == partition_kind::sampled)
    return make_sampled(from, std::move(tasks));
  if (from.partition.kind == partition_kind::file)
    return partition_of_file(from, std::move(tasks), marks);
  auto split = draw_split(from, *tasks, enrolled);
  if (!split)
    return tl::unexpected(std::move(split.error()));
  return std::make_shared<const stored_partition>(std::move(*split));
}

} // namespace mneme
