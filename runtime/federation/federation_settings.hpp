/// federation_settings: constant inputs of the federation.
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
  rejoin_policy rejoin = rejoin_policy::with_memory;
  std::int64_t memory_bytes_max = 0; ///< RAM limit in bytes for client memories; a file holds the rest. 0: no limit.
  wire_format transfer_dtype = wire_format::fp32;

  /// Classes of one task, and of all tasks up to and including this task.
  struct task_labels {
    class_range current_classes{}, seen_classes{};
  };
  std::vector<task_labels> tasks{}; ///< One entry per task.
  std::int64_t classes = 0;         ///< Number of labels of the run.

  std::string method{};           ///< The method's name, for warnings.
  bool rounds_are_stated = false; ///< The scenario sets the number of rounds per task.
  /// A client's round is one job, and its upload has the same size as the broadcast weights.
  bool upload_size_known = false;
  std::vector<party_id> other_parties{}; ///< Parties of the method other than the server, ascending.
  bool hide_task_from_clients = false;   ///< Broadcasts do not name the client's task.
  bool observers_cost_time = true;       ///< Observers spend virtual time, including a download.

  std::int64_t shards = 1;
  batch_rules batching{};
  std::int64_t ahead_bytes_max = 0;   ///< Limit in bytes for results computed ahead of virtual time.
  std::int64_t results_bytes_max = 0; ///< Limit in bytes for uploads that wait for their virtual time.
  bool results_are_repeatable = true; ///< A recomputed result has the same bits, whatever batch it runs in.

  checkpoint_section checkpoint{};
  std::int64_t stored_results_bytes_max = 0; ///< Results beyond this total are recomputed, not saved.
  bool trace = false;
  std::int64_t dumped_round = 0; ///< Round, counted from 1, whose deliveries are dumped; 0: no dump.
  std::int64_t events_max = 0;   ///< The federation stops after this many events; 0: no limit.

  [[nodiscard]] bool is_async() const noexcept { return rounds.mode == round_mode::async; }
  /// Number of uploads per server step; 1 for FedAsync.
  [[nodiscard]] std::int64_t uploads_of_step() const noexcept {
    return rounds.aggregation == aggregation_kind::fedasync ? 1 : rounds.buffer;
  }
  [[nodiscard]] bool drops_late() const noexcept { return rounds.late == late_policy::drop; }
};

/// The shard that a client belongs to.
[[nodiscard]] inline shard_id shard_of(client_id client, std::size_t shards) noexcept {
  return {client.value % static_cast<std::uint32_t>(shards)};
}

} // namespace mneme
