/// availability_trace: times at which clients can be reached, from a file.
#pragma once
#include "runtime/population/population.hpp"
#include "runtime/population/trace_periods.hpp"
namespace mneme {

/// Times from `from` (included) to `to` (excluded).
struct availability_span {
  client_id client{};
  virtual_time from{}, to{};
};

/// Immutable. 24 bytes per span. A client without a span is never reachable.
class availability_trace {
public:
  /// Joins adjacent spans of a client. @pre spans of a client do not overlap
  explicit availability_trace(std::vector<availability_span> spans, trace_periods periods = {});
  [[nodiscard]] availability_window window(client_id client, virtual_time at) const;

private:
  [[nodiscard]] availability_window window_within(client_id client, virtual_time at) const;

  std::vector<availability_span> spans_; // by client, then time
  trace_periods periods_;
};

/// Reads `from.devices.availability_file`: CSV with a header that names the columns client, from and to, the last two
/// in seconds, and may name period. Spans of a client that overlap are an error. Null if the scenario's devices follow
/// no file.
[[nodiscard]] expected<std::shared_ptr<const availability_trace>> read_availability_trace(const scenario& from);

} // namespace mneme
