/// reference_clients: enrollment, availability, task and activity of clients, computed by iterating over all clients
/// for every query.
#pragma once
#include "runtime/federation/federation_settings.hpp"
#include <set>
namespace mneme::test {

enum class client_change : std::uint32_t { joined, left, reachable, unreachable, entered_task };

class reference_clients {
public:
  struct make_change {
    client_id client{};
    client_change change{};
    task_id task{}; ///< for entered_task
  };

  explicit reference_clients(const federation_settings& rules);

  // -- over virtual time
  void open_task(task_id task, virtual_time now);
  void plan_task(const task_plan& plan) { plan_ = plan; }
  /// Time of the next change; `never` if there is none.
  [[nodiscard]] virtual_time next_change() const;
  /// Applies and returns the changes up to `now`, by time, client and kind.
  [[nodiscard]] std::vector<make_change> change_until(virtual_time now);

  [[nodiscard]] task_id task_of(client_id client) const { return clients_[client.value].task; }
  [[nodiscard]] membership member(client_id client) const;
  [[nodiscard]] std::int64_t enrolled() const;
  /// False if changes continue forever but no client with rows can return.
  [[nodiscard]] bool may_gain_client() const;

  // Selection of clients and their activity: Draws clients for free places: uniformly without replacement, by rank
  // among the idle ones.
  [[nodiscard]] std::vector<client_id> drawn_for(std::int64_t places, std::uint64_t draw) const;
  [[nodiscard]] std::vector<client_id> choose_cohort(round_id round) const;
  /// Draws observers outside the active cohort.
  [[nodiscard]] std::vector<client_id> choose_observers(round_id round) const;
  /// Returns the number of earlier visits of the client.
  std::uint32_t begin_visit(client_id client);
  void end_visit(client_id client) { clients_[client.value].busy = false; }

private:
  struct client {
    bool enrolled = false, has_left = false, reachable = true, busy = false;
    std::uint32_t stays = 0, visits = 0;
    task_id task{};
    std::set<std::tuple<virtual_time, client_change, std::uint32_t>> changes{}; // future; with the entered task
  };
  [[nodiscard]] bool has_rows(client_id client) const;
  [[nodiscard]] bool can_work(client_id client) const;
  [[nodiscard]] bool may_take_part(client_id client) const;
  bool make(client_id client, client_change change, task_id task, virtual_time now);

  const federation_settings& rules_;
  const population& population_ = *rules_.clients;
  std::vector<client> clients_;
  task_id opened_{};
  task_plan plan_{};
};

} // namespace mneme::test
