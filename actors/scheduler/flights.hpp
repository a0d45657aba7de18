/// flights: the clients at work, what is known of their rounds, and which of their jobs run next.
#pragma once
#include "actors/protocol/messages.hpp"
#include "actors/protocol/world.hpp"
#include "runtime/base/assignment_table.hpp"
#include <c10/util/SmallVector.h>
#include <functional>
#include <map>
#include <optional>
#include <vector>
namespace mneme {

/// One client at work on one broadcast, from its dispatch to its delivery.
struct flight {
  assignment_id id{};
  client_id client{};
  round_id round{};
  broadcast_ref in{};     ///< What it works on; with the client's memory and visits, all of its assignment.
  bool late = false;      ///< Missed its round's deadline and is kept.
  bool started = false;   ///< Sent to its shard.
  bool vanishes = false;  ///< Drops out during its first stage: none of its jobs are ever needed.
  virtual_time horizon{}; ///< When the last known answer's jobs are due; at first the end of the download.
  /// Stages known and not yet reached by virtual time: how long each takes, front first.
  c10::SmallVector<virtual_duration, 2> stages{};
  std::size_t stages_reached = 0;
  std::uint32_t stages_run = 0;          ///< How far its coroutine is: behind `stages` after a checkpoint.
  std::optional<client_result> result{}; ///< Known once the last stage has run, perhaps long before its time.
  bool given_up = false;                 ///< It was known, and will be computed again when its time has come.
  bool foretold = false;                 ///< Its round is one job, and `upload_bytes` is known before it has run.
  std::int64_t upload_bytes = 0;
  std::int64_t held_bytes = 0; ///< Outcomes computed ahead of virtual time.

  /// A stage's duration is known; of a round that runs again after a checkpoint it was. Returns when its jobs are due.
  virtual_time learn(std::uint32_t stage, virtual_duration takes);
  /// Whether the answer that virtual time needs before the upload's arrival has come.
  [[nodiscard]] bool answered() const {
    return stages_reached < stages.size() || result.has_value() || given_up || (foretold && !stages.empty());
  }
};

/// A job that waits at its shard.
struct parked_job {
  issued_job job{};
  virtual_time due{}; ///< When virtual time needs its outcome.
  shard_id shard{};
};

/// How jobs are chosen and cut into batches.
struct release_rules {
  std::int64_t ahead_bytes_max = 0;
  std::int64_t workers = 1;
  /// On a device whose bits depend on the batch, composition must not depend on the number of workers.
  bool balance_over_workers = true;
  bool width_is_fixed = false; ///< By the scenario: no batch may be wider.
  /// Batches that a worker's share of the rows makes at least: more where results are used while others are computed.
  std::int64_t batches_per_worker = 1;
};

[[nodiscard]] release_rules rules_of(const world& run);

/// All flights and parked jobs. Answers depend on virtual bookkeeping only, never on the order in
/// which reports arrive.
class flight_book {
public:
  /// References to other flights do not survive add() and erase().
  flight& add(flight one);
  [[nodiscard]] flight& at(assignment_id id) { return flights_.at(id); }
  [[nodiscard]] flight* find(assignment_id id) { return flights_.find(id); }
  void erase(assignment_id id);
  /// An outcome of so many bytes is computed ahead of virtual time.
  void hold(flight& owner, std::int64_t bytes);
  /// Its outcomes are in memory no more.
  void release_outcomes(flight& of);
  [[nodiscard]] std::size_t size() const noexcept { return flights_.size(); }
  /// Ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const { return flights_.ids(); }

  void park(std::vector<parked_job> jobs);
  /// Chooses what runs now: all jobs of `top`, then the others in due order while `rules` allow and
  /// `may_run` agrees; grouped by shard and key, cut at the width. Each batch ascending in id.
  [[nodiscard]] std::map<shard_id, std::vector<composition>>
  release(assignment_id top, const release_rules& rules,
          const std::function<bool(const flight&, virtual_time due)>& may_run);

private:
  /// Jobs of one shard that may share batches.
  struct group {
    shard_id shard{};
    fuse_key key{};
    std::vector<parked_job> jobs{};
  };
  void sort_by_due(assignment_id top);
  /// Takes what runs now out of the parked jobs.
  std::vector<group> chosen(assignment_id top, std::int64_t held_max,
                            const std::function<bool(const flight&, virtual_time due)>& may_run);

  assignment_table<flight> flights_;
  std::vector<parked_job> parked_;
  std::int64_t held_bytes_ = 0;
};

/// How many jobs a batch should have so that `jobs` make batches of like width: about `width`, and less than a
/// quarter more where that saves a batch.
[[nodiscard]] std::int64_t even_width(std::int64_t jobs, std::int64_t width);

/// Cuts `jobs` of one key into batches: those of a shard, where all shards have `rows` of that key.
[[nodiscard]] std::vector<composition> cut(std::vector<parked_job> jobs, std::int64_t rows, const release_rules& rules);

struct batch_limits {
  std::int64_t width = 1;    ///< Jobs of a batch.
  std::int64_t rows_max = 0; ///< About so many rows; 0: any.
  /// Outcomes are used while others are computed: the first ones that are due come first, and the last batches are
  /// smaller, down to a quarter, so that all threads end together.
  bool tapered = false;
};

/// Cuts `jobs` of one key into batches: jobs of like length together, so that groups stay wide. Where outcomes are
/// large, the first ones that are due come first, too.
[[nodiscard]] std::vector<composition> cut(std::vector<parked_job> jobs, const batch_limits& limits);

} // namespace mneme
