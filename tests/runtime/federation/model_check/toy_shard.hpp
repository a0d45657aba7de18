/// toy_shard: shard that responds at the times and in the number of messages that the test chooses, and checks every
/// request.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "tests/runtime/federation/model_check/toy_federation.hpp"
#include <deque>
#include <map>
#include <variant>
namespace mneme::test {

class toy_shard {
public:
  using message = std::variant<start_rounds, release, abandon>;

  toy_shard(const toy_federation& toy, shard_id which) : toy_(&toy), which_(which) {}
  /// Messages are handled in order.
  void handle(const message& received);
  /// Reports that are ready, next one first. The last one of a wave is marked.
  [[nodiscard]] bool has_report() const noexcept { return !reports_.empty(); }
  [[nodiscard]] wave_report take_report();
  /// True if no client is active.
  [[nodiscard]] bool is_empty() const noexcept { return clients_.empty(); }
  /// Splits reports into random parts drawn from this stream; null: as few parts as possible.
  void split_by(rng_stream* stream) noexcept { splits_ = stream; }

private:
  struct hosted {
    toy_assignment given{};
    virtual_time ready{};
    std::uint32_t stage = 0;
    std::vector<toy_job> jobs{}; // jobs of the current stage
    std::vector<bool> has_run{};
  };
  /// Results of the current message.
  struct outcome {
    std::vector<issued_job> issued{};
    std::vector<finished_round> finished{};
    std::vector<round_failure> failed{};
  };
  void start(const start_rounds& wave);
  void run(const std::vector<composition>& batches, outcome& so_far);
  void look_at(const composition& batch) const;
  void advance(assignment_id id, hosted& client, outcome& so_far);
  void report(outcome done);

  const toy_federation* toy_;
  shard_id which_;
  rng_stream* splits_ = nullptr;
  std::map<assignment_id, hosted> clients_;
  std::deque<wave_report> reports_;
};

} // namespace mneme::test
