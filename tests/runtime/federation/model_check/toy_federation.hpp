/// toy_federation: small random federation whose method computes with integers, so that any change of order changes the
/// result.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/method/strategy.hpp"
#include <stdexcept>
namespace mneme::test {

/// Hashes values; the result depends on each value and on their order.
[[nodiscard]] std::uint64_t mixed(std::initializer_list<std::uint64_t> values);

struct toy_job {
  std::int64_t rows = 0, bytes = 0;
  fuse_key key{};
};
/// Result of a client's round.
struct toy_result {
  std::uint64_t upload = 0;
  std::optional<std::uint64_t> memory{}; ///< Null: the memory does not change.
  std::int64_t rows = 0, upload_bytes = 0;
  std::uint64_t to_proxy = 0; ///< 0: nothing.
  std::int64_t proxy_bytes = 0;
  double count = 0.0; ///< Under the key "toy".
  double loss = 0.0;  ///< Training loss over `rows`; 0: none.
};
/// Input of a client's round.
struct toy_assignment {
  client_id client{};
  task_id task{};
  std::uint32_t visit = 0;
  std::uint64_t model = 0;
  std::uint64_t memory = 0; ///< 0: none.
  std::uint64_t advice = 0; ///< 0: none.
  bool observes = false;
};

/// Error of the federation, as text.
struct broken_rule : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void require(bool holds, const char* rule, std::uint64_t number = 0);

struct toy_federation {
  static constexpr std::int64_t events_max = 200'000;   ///< Above the number of events of any finite run.
  static constexpr std::int64_t plenty = 1'000'000'000; ///< Number of bytes that no run reaches.
  federation_settings settings{};
  std::int64_t stages_max = 1;
  std::int64_t rows_of_every_job = 0;                           ///< 0: random.
  std::int64_t upload_bytes_of_all = 0, proxy_bytes_of_all = 0; ///< 0: random.
  std::int64_t broadcast_bytes = 8, once_bytes = 0;
  std::int64_t upload_scale = 1;  ///< Factor between the stated and the real size of uploads.
  std::vector<task_plan> plans{}; ///< [tasks]
  std::uint64_t fails_one_of = 0; ///< Fails 1 of this number of client rounds, by assignment; 0: none.

  [[nodiscard]] bool has_proxy() const noexcept { return !settings.other_parties.empty(); }
  /// Makes every stage one job.
  [[nodiscard]] bool has_single_jobs() const noexcept { return settings.upload_size_known; }
  /// Jobs of each stage of a round, derived from the assignment.
  [[nodiscard]] std::vector<std::vector<toy_job>> stages_of(const toy_assignment& given) const;
  /// Duration of each stage.
  [[nodiscard]] std::vector<virtual_duration> durations_of(const toy_assignment& given) const;
  [[nodiscard]] toy_result result_of(const toy_assignment& given) const;
  [[nodiscard]] bool fails(const toy_assignment& given) const {
    return fails_one_of > 0 && mixed({given.client.value, given.visit, given.model}) % fails_one_of == 0;
  }
};
/// Random federation with few clients, tasks and rounds. It uses every feature of scenarios with some probability.
[[nodiscard]] toy_federation random_federation(std::uint64_t seed);

/// Server half: a fold that depends on the order, and a step.
struct toy_server {
  std::uint64_t model = 1, sum = 0;
  void fold(const delivery& upload, std::uint64_t value);
  [[nodiscard]] digest128 step();
  [[nodiscard]] evaluated evaluate(task_id upto, class_range mask) const;
  /// Evaluation computed from the model: accuracies in percent, total and by task, and the mean loss.
  struct metrics_of_model {
    std::vector<double> accuracies{};
    double loss = 0.0;
  };
  [[nodiscard]] metrics_of_model metrics(task_id upto, class_range mask) const;
};

/// Proxy half: its advice depends on everything that it has received, in order, and on the model.
struct toy_proxy {
  static constexpr std::int64_t advice_bytes = 24, model_bytes = 8;
  std::uint64_t sum = 0, advice = 0;
  void receive(const delivery& sent, std::uint64_t value);
  [[nodiscard]] digest128 advise(std::uint64_t model);
};

/// Stores a number in the first of `bytes`
/// 8 elements of a tensor, and reads it back. 0 is stored as null.
[[nodiscard]] tensors_ref as_tensors(std::uint64_t value, std::int64_t bytes = 8);
[[nodiscard]] std::uint64_t as_number(const tensors_ref& tensors);

} // namespace mneme::test
