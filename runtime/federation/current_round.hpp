/// current_round: the open round, or what lies between two server steps of an asynchronous federation.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

struct current_round {
  round_place place{};
  opened_round opened{};
  /// What a party has said last, for the next broadcasts.
  struct said {
    tensors_ref advice{};
    std::int64_t bytes = 0;
  };
  std::array<said, parties.size()> heard{};
  bool is_open = false;       ///< Between the broadcast and the closing.
  bool wants_clients = false; ///< It is open, and no client was available yet.
  virtual_time deadline = never;
  std::int64_t missing = 0;             ///< Assignments of this round not delivered, looked, dropped or left.
  std::int64_t folded = 0;              ///< Uploads delivered in it.
  std::vector<client_id> dropped_out{}; ///< Its clients that are never answered: busy until it closes.

  /// The next task begins.
  void open_task(task_id task, const federation_settings& settings);
  /// The server has made the broadcast, with which goes what the other parties have said.
  void open(opened_round answer);
  [[nodiscard]] bool is_last_of_task() const noexcept { return place.round_of_task + 1 == place.rounds_of_task; }
  /// What its clients receive that are in `task`.
  [[nodiscard]] broadcast_ref broadcast_in(task_id task, const federation_settings& settings);
  /// Bytes of an upload that is like the weights of the broadcast; 0 where it is not known.
  [[nodiscard]] std::int64_t known_upload_bytes(const federation_settings& settings);

  void persist(archive& state);

private:
  std::vector<broadcast_ref> older_tasks_{}; // the broadcast for clients that are still in an older task; by task
  broadcast_ref blind_{};                    // that for clients which are not told their task
  std::pair<tensors_ref, std::int64_t> known_upload_{}; // weights, and the bytes of uploads like them
};

} // namespace mneme
