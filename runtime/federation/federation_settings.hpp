/// federation_settings: all facts by which the federation decides, read and never changed.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/population/client_rows.hpp"
namespace mneme {

struct federation_settings {
  std::uint64_t seed = 0;
  std::shared_ptr<const population> clients{};
  std::shared_ptr<const client_rows> rows{};
  rounds_section rounds{};
  evaluation_section evaluation{};
  rejoining rejoin = rejoining::with_memory;
  std::int64_t memory_bytes_max = 0; ///< Memories of clients that are held here, not in a file; 0: any.
  wire_format wire = wire_format::fp32;

  /// Labels that occur in a task, and those of all tasks up to it.
  struct task_labels {
    class_range current{}, opened{};
  };
  std::vector<task_labels> tasks{}; ///< [tasks]
  std::int64_t classes = 0;         ///< All labels of the run.

  std::string method{};           ///< Its name, for warnings.
  bool rounds_are_stated = false; ///< The scenario says how many rounds a task takes.
  /// A client's round is one job, and its upload weighs as much as the broadcast's weights.
  bool upload_size_known = false;
  std::vector<party_id> further_parties{}; ///< Those of the method besides the server, ascending.
  bool blind_clients = false;              ///< Broadcasts do not say which task a client is in.
  bool observing_costs = true;             ///< Clients that look take time and a download.

  std::int64_t shards = 1;
  batch_rules batching{};
  std::int64_t ahead_bytes_max = 0;   ///< Outcomes that are computed ahead of virtual time.
  std::int64_t results_bytes_max = 0; ///< Uploads that wait for their virtual time.
  bool results_are_repeatable = true; ///< A result computed again has the same bits, whatever its batch.

  checkpoint_section checkpoint{};
  std::int64_t stored_results_bytes_max = 0; ///< Larger ones are computed again after a checkpoint.
  bool trace = false;
  std::int64_t values_round = 0; ///< What is delivered in this round, from 1, goes to a file as it is; 0: in none.
  std::int64_t events_max = 0;   ///< Events after which the federation stops by itself; 0: never.

  [[nodiscard]] bool is_async() const noexcept { return rounds.mode == round_mode::async; }
  /// FedAsync steps with every upload.
  [[nodiscard]] std::int64_t uploads_of_step() const noexcept {
    return rounds.aggregation == aggregation_kind::fedasync ? 1 : rounds.buffer;
  }
  [[nodiscard]] bool drops_late() const noexcept { return rounds.late == late_policy::drop; }
};

/// The shard that hosts a client.
[[nodiscard]] inline shard_id shard_of(client_id client, std::size_t shards) noexcept {
  return {client.value % static_cast<std::uint32_t>(shards)};
}

} // namespace mneme
