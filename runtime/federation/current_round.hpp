/// current_round: state of the open round. In an asynchronous run, a round is the time between two server steps.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

struct current_round {
  round_place place{};
  opened_round opened{};
  /// Latest advice of a party, to be sent with the next broadcasts.
  struct said {
    tensors_ref advice{};
    std::int64_t bytes = 0;
  };
  std::array<said, parties.size()> heard{};
  bool is_open = false;       ///< True between broadcast and close.
  bool wants_clients = false; ///< The round is open and no client has been available yet.
  virtual_time deadline = never;
  std::int64_t missing = 0; ///< Assignments of this round that are not delivered, observed, dropped or left.
  std::int64_t folded = 0;  ///< Number of uploads delivered.
  std::vector<client_id> dropped_out{}; ///< Dropped-out clients; busy until the round closes.

  /// Starts the next task.
  void open_task(task_id task, const federation_settings& settings);
  /// Opens the round with the server's broadcast, to which the advice of other parties is added.
  void open(opened_round answer);
  [[nodiscard]] bool is_last_of_task() const noexcept { return place.round_of_task + 1 == place.rounds_of_task; }
  /// Broadcast for clients in `task`.
  [[nodiscard]] broadcast_ref broadcast_in(task_id task, const federation_settings& settings);
  /// Bytes of an upload that has the layout of the broadcast weights; 0 if unknown.
  [[nodiscard]] std::int64_t known_upload_bytes(const federation_settings& settings);

  void persist(archive& state);

private:
  std::vector<broadcast_ref> older_tasks_{};            // broadcasts for clients in an older task; by task
  broadcast_ref blind_{};                               // broadcast without the task, for methods that hide it
  std::pair<tensors_ref, std::int64_t> known_upload_{}; // weights, and bytes of uploads with their layout
};

} // namespace mneme
