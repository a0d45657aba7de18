/// population: who is enrolled in which task, and how fast each client's device and links are.
#pragma once
#include "runtime/ids.hpp"
#include "runtime/rng.hpp"
#include "runtime/scenario/scenario.hpp"
namespace mneme {

enum class membership : std::uint8_t { not_yet, active, left };

/// Answers from the scenario alone, without state: a million clients cost nothing until asked about.
class population {
public:
  /// @pre `from` has passed read_scenario's checks
  explicit population(const scenario& from);

  [[nodiscard]] std::int64_t size() const noexcept { return count_; }
  [[nodiscard]] membership member(client_id who, task_id during) const;
  /// Active clients of a task; O(1) for all and growing, O(groups) for table.
  [[nodiscard]] std::int64_t enrolled(task_id during) const;

  /// rows / rows_per_second.
  [[nodiscard]] virtual_duration compute_time(client_id who, std::int64_t rows) const;
  /// latency + 8 * bytes / (mbit * 1e6) s; a bandwidth of 0 is instantaneous but for the latency.
  [[nodiscard]] virtual_duration download_time(client_id who, std::int64_t bytes) const;
  [[nodiscard]] virtual_duration upload_time(client_id who, std::int64_t bytes) const;
  /// Whether this assignment is never answered; keyed by client and visit.
  [[nodiscard]] bool drops_out(client_id who, task_id during, std::uint32_t visit) const;

private:
  [[nodiscard]] double device(const device_value& value, purpose what, client_id who) const;
  [[nodiscard]] virtual_duration transfer_time(double mbit, std::int64_t bytes) const;

  std::int64_t count_ = 0;
  std::uint64_t seed_ = 0;
  enrolment_section enrolment_;
  devices_section devices_;
};

} // namespace mneme
