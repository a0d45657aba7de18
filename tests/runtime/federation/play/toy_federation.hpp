/// toy_federation: a small federation drawn from a seed, whose method works on whole numbers, in an order that shows.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/server_steps.hpp"
#include "runtime/method/strategy.hpp"
namespace mneme::test {

/// Mixes values so that neither their order nor any of them can be exchanged.
[[nodiscard]] std::uint64_t mixed(std::initializer_list<std::uint64_t> values);

struct toy_job {
  std::int64_t rows = 0, bytes = 0;
  fuse_key key{};
};
/// What the round of a client ends with.
struct toy_result {
  std::uint64_t upload = 0;
  std::optional<std::uint64_t> memory{}; ///< Null: memory stays.
  std::int64_t rows = 0, upload_bytes = 0;
};
/// On what a client works.
struct toy_assignment {
  client_id client{};
  task_id task{};
  std::uint32_t visit = 0;
  std::uint64_t model = 0;
  std::uint64_t memory = 0; ///< 0: none.
};

struct toy_federation {
  static constexpr std::int64_t plenty = 1'000'000'000; ///< Bytes that are never reached.
  federation_settings settings{};
  std::int64_t stages_max = 1;
  std::int64_t rows_of_every_job = 0; ///< 0: drawn.
  std::int64_t broadcast_bytes = 8, once_bytes = 0;
  std::int64_t upload_scale = 1;  ///< Uploads are said to weigh so much more than they do.
  std::vector<task_plan> plans{}; ///< [tasks]

  /// Every stage is one job.
  [[nodiscard]] bool has_single_jobs() const noexcept { return settings.upload_size_known; }
  /// The jobs of each stage of a round, which follow from the assignment.
  [[nodiscard]] std::vector<std::vector<toy_job>> stages_of(const toy_assignment& given) const;
  /// How long each stage takes.
  [[nodiscard]] std::vector<virtual_duration> durations_of(const toy_assignment& given) const;
  [[nodiscard]] toy_result result_of(const toy_assignment& given) const;
};
/// A federation of a few clients, tasks and rounds, in which everything that a scenario can ask for happens now and
/// then.
[[nodiscard]] toy_federation random_federation(std::uint64_t seed);

/// The server half: a fold whose order shows, and a step.
struct toy_server {
  std::uint64_t model = 1, sum = 0;
  void fold(const delivery& upload, std::uint64_t value);
  [[nodiscard]] digest128 step();
  [[nodiscard]] evaluated evaluate(task_id upto, class_range mask) const;
  /// What follows from the same: accuracies in percent, pooled and then by task, and the mean loss.
  struct metrics_of_model {
    std::vector<double> accuracies{};
    double loss = 0.0;
  };
  [[nodiscard]] metrics_of_model metrics(task_id upto, class_range mask) const;
};

/// A number as the first of `bytes` / 8 elements of a tensor, and back. 0: null.
[[nodiscard]] tensors_ref as_tensors(std::uint64_t value, std::int64_t bytes = 8);
[[nodiscard]] std::uint64_t as_number(const tensors_ref& tensors);

} // namespace mneme::test
