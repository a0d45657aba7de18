/// toy_federation: a small federation drawn from a seed, whose method works on whole numbers, in an order that shows.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/method/strategy.hpp"
#include <stdexcept>
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
  std::uint64_t to_proxy = 0; ///< 0: nothing.
  std::int64_t proxy_bytes = 0;
  double count = 0.0; ///< Under the key "toy".
  double loss = 0.0;  ///< Loss of its training on `rows`; 0: none.
};
/// On what a client works.
struct toy_assignment {
  client_id client{};
  task_id task{};
  std::uint32_t visit = 0;
  std::uint64_t model = 0;
  std::uint64_t memory = 0; ///< 0: none.
  std::uint64_t advice = 0; ///< 0: none.
  bool looks = false;
};

/// What the federation did wrong, in words.
struct broken_rule : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void require(bool holds, const char* rule, std::uint64_t number = 0);

struct toy_federation {
  static constexpr std::int64_t events_max = 200'000;   ///< No run has so many: one that does would never end.
  static constexpr std::int64_t plenty = 1'000'000'000; ///< Bytes that are never reached.
  federation_settings settings{};
  std::int64_t stages_max = 1;
  std::int64_t rows_of_every_job = 0;                           ///< 0: drawn.
  std::int64_t upload_bytes_of_all = 0, proxy_bytes_of_all = 0; ///< The same.
  std::int64_t broadcast_bytes = 8, once_bytes = 0;
  std::int64_t upload_scale = 1;  ///< Uploads are said to weigh so much more than they do.
  std::vector<task_plan> plans{}; ///< [tasks]
  std::uint64_t fails_one_of = 0; ///< So many rounds of clients, which follows from the assignment; 0: none fails.

  [[nodiscard]] bool has_proxy() const noexcept { return !settings.further_parties.empty(); }
  /// Every stage is one job.
  [[nodiscard]] bool has_single_jobs() const noexcept { return settings.upload_size_known; }
  /// The jobs of each stage of a round, which follow from the assignment.
  [[nodiscard]] std::vector<std::vector<toy_job>> stages_of(const toy_assignment& given) const;
  /// How long each stage takes.
  [[nodiscard]] std::vector<virtual_duration> durations_of(const toy_assignment& given) const;
  [[nodiscard]] toy_result result_of(const toy_assignment& given) const;
  [[nodiscard]] bool fails(const toy_assignment& given) const {
    return fails_one_of > 0 && mixed({given.client.value, given.visit, given.model}) % fails_one_of == 0;
  }
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

/// The proxy half: what it says follows from all that it has received, in its order, and from the model.
struct toy_proxy {
  static constexpr std::int64_t advice_bytes = 24, model_bytes = 8;
  std::uint64_t sum = 0, advice = 0;
  void receive(const delivery& sent, std::uint64_t value);
  [[nodiscard]] digest128 advise(std::uint64_t model);
};

/// A number as the first of `bytes` / 8 elements of a tensor, and back. 0: null.
[[nodiscard]] tensors_ref as_tensors(std::uint64_t value, std::int64_t bytes = 8);
[[nodiscard]] std::uint64_t as_number(const tensors_ref& tensors);

} // namespace mneme::test
