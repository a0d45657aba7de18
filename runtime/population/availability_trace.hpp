/// availability_trace: times at which clients are reachable, read from a file.
#pragma once
#include "runtime/population/population.hpp"
#include "runtime/population/trace_periods.hpp"
namespace mneme {

/// Span of time from `from` (included) to `to` (excluded).
struct availability_span {
  client_id client{};
  virtual_time from{}, to{};
};

/// Immutable; takes 24 bytes per span. A client without spans is never reachable.
class availability_trace {
public:
  /// Merges adjacent spans of a client. @pre spans of a client do not overlap
  explicit availability_trace(std::vector<availability_span> spans, trace_periods periods = {});
  /// Returns whether the client is reachable at a time, and until when this state lasts.
  [[nodiscard]] availability_window window(client_id client, virtual_time at) const;

private:
  [[nodiscard]] availability_window window_within(client_id client, virtual_time at) const;

  std::vector<availability_span> spans_; // sorted by client, then time
  trace_periods periods_;
};

/// Reads `from.devices.availability_file`, a CSV file with the columns client, from and to (in seconds), and optionally
/// `period`. Fails if spans of a client overlap. Returns null if the scenario names no such file.
[[nodiscard]] expected<std::shared_ptr<const availability_trace>> read_availability_trace(const scenario& from);

} // namespace mneme
