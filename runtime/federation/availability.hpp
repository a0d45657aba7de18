/// availability: tracks which clients are enrolled and reachable at the current virtual time, and the task of each
/// client.
#pragma once
#include "runtime/population/population.hpp"
#include <optional>
namespace mneme {

/// A change of a client's state at a virtual time.
struct availability_change {
  enum class kind : std::uint32_t { joined, left, reachable, unreachable, entered_task };
  virtual_time at{};
  client_id client{};
  kind change_kind = kind::joined;
  task_id task{}; ///< The new task; set for entered_task only.
};

/// Calendar with the next change of each kind and client. The calendar keeps no state per client if enrollment follows
/// from the task, devices are always reachable, and all clients change task together. Otherwise it needs at most 57
/// bytes per client.
class availability {
public:
  explicit availability(std::shared_ptr<const population> clients);

  /// Opens a task at the server. Depending on the population, clients enter the task now or later, each at its own
  /// time. Tasks open in ascending order. @pre move_to(now) was called
  void open_task(task_id task, virtual_time now);
  /// Time of the next change. Returns nullopt if there is none.
  [[nodiscard]] std::optional<virtual_time> next_change() const;
  /// Applies and returns the changes up to and including `now`, ordered by time, then client.
  [[nodiscard]] std::vector<availability_change> move_to(virtual_time now);

  [[nodiscard]] task_id task_of(client_id client) const { return entered_.empty() ? opened_ : entered_[client.value]; }
  /// The client's membership in its current task.
  [[nodiscard]] membership member(client_id client) const;
  /// True if the client is enrolled and reachable, so that it can receive work.
  [[nodiscard]] bool is_available(client_id client) const {
    return member(client) == membership::active && (flags_.empty() || !(flags_[client.value] & away));
  }
  /// True if the client is enrolled, or can enroll before the server opens another task.
  [[nodiscard]] bool may_take_part(client_id client) const;
  /// Number of clients that are enrolled now.
  [[nodiscard]] std::int64_t enrolled() const;
  /// True if changes never end, so that a pending change does not imply that another client can take part.
  [[nodiscard]] bool endless() const;
  /// True if a loaded calendar is valid for this population and this number of tasks.
  [[nodiscard]] bool is_valid(std::size_t tasks) const;
  template <class Archive>
  void persist(Archive& state) {
    state(opened_)(calendar_).plain(flags_).plain(stays_).plain(entered_)(enrolled_);
  }

private:
  struct entry {
    virtual_time at{};
    client_id client{};
    std::uint32_t change = 0; // numeric value of the kind; for entered_task: this value plus the task's number
    template <class Archive>
    void persist(Archive& state) {
      state(at)(client)(change);
    }
  };
  static constexpr std::uint8_t away = 1, enrolled_now = 2, has_left = 4;

  static bool later(const entry& a, const entry& b) noexcept;
  void push(const entry& change);
  void plan_first_changes();
  [[nodiscard]] std::vector<client_id> clients_keeping_task(task_id into) const;
  void follow_up(const entry& change);

  std::shared_ptr<const population> clients_;
  bool random_ = false, reaches_ = false, staggered_ = false;
  task_id opened_{};
  std::vector<entry> calendar_;      // binary heap with the earliest change on top
  std::vector<std::uint8_t> flags_;  // indexed by client; empty if all clients are always enrolled and reachable
  std::vector<std::uint32_t> stays_; // indexed by client: number of completed stays; empty unless enrollment is random
  std::vector<task_id> entered_;     // indexed by client; empty unless clients change task one by one or keep old tasks
  std::int64_t enrolled_ = 0;        // maintained only for random enrollment
};

} // namespace mneme
