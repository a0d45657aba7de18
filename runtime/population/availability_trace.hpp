/// availability_trace: when each client can be reached, from a file.
#pragma once
#include "runtime/population/population.hpp"
namespace mneme {

/// Times from `from` up to, and without, `to`.
struct availability_span {
  client_id client{};
  virtual_time from{}, to{};
};

/// Const once made. 24 bytes a span; a client without one can never be reached.
class availability_trace {
public:
  /// Spans of one client may touch and overlap: they are joined.
  explicit availability_trace(std::vector<availability_span> spans);
  [[nodiscard]] availability_window window(client_id client, virtual_time at) const;

private:
  std::vector<availability_span> spans_; // by client, then time
};

/// Reads `from.devices.availability_file`: CSV with a header that names the columns client, from and to, the last two
/// in seconds. Null if the scenario's devices follow no file.
[[nodiscard]] expected<std::shared_ptr<const availability_trace>> read_availability_trace(const scenario& from);

} // namespace mneme
