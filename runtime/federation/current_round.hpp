/// current_round: state of the open round. In an asynchronous run, a round is the time between two server steps.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

struct current_round {
  round_info info{};
  opened_round opened{};
  /// The latest advice of a party; it is sent with the next broadcasts.
  struct party_advice {
    tensors_ref advice{};
    std::int64_t bytes = 0;
  };
  std::array<party_advice, parties.size()> last_advice{};
  bool is_open = false;       ///< True from the broadcast until the round closes.
  bool wants_clients = false; ///< The round is open and no client has been available yet.
  virtual_time deadline = never;
  std::int64_t missing = 0;             ///< Number of assignments of this round that are still in flight.
  std::int64_t folded = 0;              ///< Number of uploads delivered.
  std::vector<client_id> dropped_out{}; ///< Clients that dropped out; they stay busy until the round closes.

  /// Starts the next task.
  void open_task(task_id task, const federation_settings& settings);
  /// Opens the round with the server's broadcast and adds the advice of the other parties to it.
  void open(opened_round answer);
  [[nodiscard]] bool is_last_of_task() const noexcept { return info.round_of_task + 1 == info.rounds_of_task; }
  /// Returns the broadcast for clients in `task`.
  [[nodiscard]] broadcast_ref broadcast_in(task_id task, const federation_settings& settings);
  /// Bytes of an upload with the same layout as the broadcast weights. Returns 0 if unknown.
  [[nodiscard]] std::int64_t known_upload_bytes(const federation_settings& settings);

  void persist(archive& state);

private:
  std::vector<broadcast_ref> older_tasks_{};            // broadcasts for clients in an older task, indexed by task
  broadcast_ref blind_{};                               // broadcast without the task, for methods that hide the task
                                                        // from clients
  std::pair<tensors_ref, std::int64_t> known_upload_{}; // the weights of the broadcast, and the size of an upload with
                                                        // the same layout
};

} // namespace mneme
