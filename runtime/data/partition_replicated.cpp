#include "runtime/base/bounded_number_set.hpp"
#include "runtime/base/check.hpp"
#include "runtime/data/partition_kinds.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
namespace mneme {
namespace {

rng_stream client_stream(rng_key key, client_id client) {
  key.client = client;
  return rng_stream(key);
}

/// Every client holds all rows of a random share of the task's classes (Dong et al. 2022, 2023).
class class_share final : public partition {
public:
  class_share(const scenario& from, std::shared_ptr<const task_stream> tasks) : tasks_(std::move(tasks)) {
    for (std::uint32_t t = 0; t < tasks_->tasks.size(); ++t)
      each_.push_back({positions_by_class(*tasks_, {t}), split_key(from, purpose::partition, {t}),
                       classes_held(from.partition.class_share, tasks_->tasks[t].classes.size())});
  }

  [[nodiscard]] std::int64_t size(client_id client, task_id task) const override {
    std::int64_t sum = 0;
    for (const std::size_t c : drawn(client, task))
      sum += std::ssize(each_[task.value].by_class[c]);
    return sum;
  }

  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override {
    const auto& train = tasks_->tasks.at(task.value).train;
    std::vector<std::int64_t> rows;
    rows.reserve(static_cast<std::size_t>(size(client, task)));
    for (const std::size_t c : drawn(client, task))
      for (const row_position position : each_[task.value].by_class[c])
        rows.push_back(train[position]);
    std::sort(rows.begin(), rows.end());
    return rows;
  }

private:
  struct task_classes {
    std::vector<std::vector<row_position>> by_class{};
    rng_key key{};
    std::size_t held = 0; // number of classes per client
  };

  /// floor(share * classes), but at least 1. A tolerance absorbs rounding errors, so that 0.7 times 10 gives 7.
  static std::size_t classes_held(double share, std::int64_t classes) {
    const double held = std::floor(share * static_cast<double>(classes) + 1e-9);
    return static_cast<std::size_t>(std::clamp(held, 1.0, static_cast<double>(classes)));
  }

  /// The client's classes of a task: the first ones of a shuffled list.
  [[nodiscard]] std::vector<std::size_t> drawn(client_id client, task_id task) const {
    const auto& [by_class, key, held] = each_.at(task.value);
    auto stream = client_stream(key, client);
    std::vector<std::size_t> classes(by_class.size());
    std::iota(classes.begin(), classes.end(), 0);
    for (std::size_t i = 0; i < held; ++i)
      std::swap(classes[i], classes[i + stream.below(classes.size() - i)]);
    classes.resize(held);
    return classes;
  }

  std::shared_ptr<const task_stream> tasks_;
  std::vector<task_classes> each_;
};

/// Draws `size` distinct numbers below n, ascending, by Floyd's algorithm (Bentley and Floyd 1987). Time and memory are
/// proportional to `size` and do not depend on n.
std::vector<row_position> subset(std::size_t size, std::size_t n, rng_stream& stream) {
  bounded_number_set positions(size);
  for (std::size_t last = n - size; last < n; ++last)
    if (!positions.insert(static_cast<row_position>(stream.below(last + 1))))
      positions.insert(static_cast<row_position>(last));
  return std::move(positions).ascending();
}

/// Every client has rows_per_client rows of the task. Each call draws these rows again.
class sampled final : public partition {
public:
  sampled(const scenario& from, std::shared_ptr<const task_stream> tasks)
      : tasks_(std::move(tasks)), rows_per_client_(from.partition.rows_per_client) {
    MNEME_CHECK(rows_per_client_ > 0, rows_per_client_);
    for (std::uint32_t t = 0; t < tasks_->tasks.size(); ++t)
      keys_.push_back(split_key(from, purpose::sampled_rows, {t}));
  }

  [[nodiscard]] std::int64_t size(client_id, task_id task) const override {
    return tasks_->tasks.at(task.value).train.empty() ? 0 : rows_per_client_;
  }

  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override {
    const auto& train = tasks_->tasks.at(task.value).train;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(size(client, task)));
    auto stream = client_stream(keys_[task.value], client);
    if (rows.size() <= train.size()) {
      const auto positions = subset(rows.size(), train.size(), stream);
      std::transform(positions.begin(), positions.end(), rows.begin(), [&](row_position at) { return train[at]; });
      return rows;
    }
    std::generate(rows.begin(), rows.end(), [&] { return train[stream.below(train.size())]; });
    std::sort(rows.begin(), rows.end());
    return rows;
  }

private:
  std::shared_ptr<const task_stream> tasks_;
  std::int64_t rows_per_client_;
  std::vector<rng_key> keys_; // indexed by task
};

} // namespace

std::shared_ptr<const partition> make_class_share(const scenario& from, std::shared_ptr<const task_stream> tasks) {
  return std::make_shared<const class_share>(from, std::move(tasks));
}

std::shared_ptr<const partition> make_sampled(const scenario& from, std::shared_ptr<const task_stream> tasks) {
  return std::make_shared<const sampled>(from, std::move(tasks));
}

} // namespace mneme
