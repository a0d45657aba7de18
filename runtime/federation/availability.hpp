/// availability: who is enrolled and can be reached at the present virtual time, and in which task each client is.
#pragma once
#include "runtime/population/population.hpp"
#include <optional>
namespace mneme {

/// What happens to a client by itself.
struct availability_change {
  enum class kind : std::uint32_t { joined, left, reachable, unreachable, entered_task };
  virtual_time at{};
  client_id client{};
  kind change_kind = kind::joined;
  task_id task{}; ///< entered_task
};

/// A calendar of the next changes, at most one of a kind per client, that is moved along with virtual time. Where
/// enrolment follows from the task, devices are always there and all clients change task together, nothing ever
/// changes by itself and nothing is kept per client; else at most 57 bytes are.
class availability {
public:
  explicit availability(std::shared_ptr<const population> clients);

  /// The server opens a task: clients enter it now, or each at its own time. Tasks come in order. @pre moved to `now`
  void open_task(task_id task, virtual_time now);
  /// When the next change comes; null: never.
  [[nodiscard]] std::optional<virtual_time> next_change() const;
  /// Changes up to and including `now`, by time, then client. They are made when this returns.
  [[nodiscard]] std::vector<availability_change> move_to(virtual_time now);

  [[nodiscard]] task_id task_of(client_id client) const { return entered_.empty() ? opened_ : entered_[client.value]; }
  [[nodiscard]] membership member(client_id client) const;
  /// It is enrolled and within reach: it may be given work.
  [[nodiscard]] bool is_available(client_id client) const {
    return member(client) == membership::active && (flags_.empty() || !(flags_[client.value] & away));
  }
  /// It is enrolled, or may still be before the server opens another task.
  [[nodiscard]] bool may_take_part(client_id client) const;
  /// Clients enrolled now.
  [[nodiscard]] std::int64_t enrolled() const;
  /// Changes come for ever, so that waiting for them alone proves nothing.
  [[nodiscard]] bool endless() const;
  /// What was loaded is a calendar of these clients and of so many tasks.
  [[nodiscard]] bool is_sound(std::size_t tasks) const;
  template <class Archive>
  void persist(Archive& state) {
    state(opened_)(calendar_).plain(flags_).plain(stays_).plain(entered_)(enrolled_);
  }

private:
  struct entry {
    virtual_time at{};
    client_id client{};
    std::uint32_t change = 0; // a kind; from entered_task on: plus the task
    template <class Archive>
    void persist(Archive& state) {
      state(at)(client)(change);
    }
  };
  static constexpr std::uint8_t away = 1, enrolled_now = 2, has_left = 4;

  static bool later(const entry& a, const entry& b) noexcept;
  void push(const entry& change);
  void plan_first_changes();
  [[nodiscard]] std::vector<client_id> staying(task_id into) const;
  void follow_up(const entry& change);

  std::shared_ptr<const population> clients_;
  bool random_ = false, reaches_ = false, staggered_ = false;
  task_id opened_{};
  std::vector<entry> calendar_;      // a heap, the earliest on top
  std::vector<std::uint8_t> flags_;  // by client; empty where all clients are always enrolled and available
  std::vector<std::uint32_t> stays_; // by client: stays that have ended; empty unless enrolment is random
  std::vector<task_id> entered_;     // by client; empty unless clients change task one by one, or some stay behind
  std::int64_t enrolled_ = 0;        // where enrolment is random
};

} // namespace mneme
