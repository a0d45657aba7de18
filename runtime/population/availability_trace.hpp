/// availability_trace: when each client can be reached, from a file.
#pragma once
#include "runtime/population/population.hpp"
#include "runtime/population/trace_periods.hpp"
namespace mneme {

/// Times from `from` up to, and without, `to`.
struct availability_span {
  client_id client{};
  virtual_time from{}, to{};
};

/// Const once made. 24 bytes a span; a client without one can never be reached.
class availability_trace {
public:
  /// Spans of one client that touch are joined.
  /// @pre they do not overlap
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
