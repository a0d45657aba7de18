/// trace_periods: how long each client's trace is, where traces repeat.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/settings/scenario.hpp"
#include <vector>
namespace mneme {

class trace_periods {
public:
  /// Traces do not repeat.
  trace_periods() = default;
  /// As the scenario has it. @param clients of the run
  explicit trace_periods(const devices_section& devices, std::int64_t clients)
      : repeats_(devices.trace_end == trace_end_rule::repeat), fixed_(devices.trace_period) {
    if (repeats_ && fixed_.count() == 0)
      lengths_.resize(static_cast<std::size_t>(clients));
  }

  /// A span of the client, or what its line says of the whole trace, ends then.
  void extend(client_id client, virtual_duration ends) {
    if (!lengths_.empty())
      lengths_[client.value] = std::max(lengths_[client.value], ends);
  }
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }
  /// 0: the trace of the client does not repeat.
  [[nodiscard]] virtual_duration length(client_id client) const {
    return !repeats_ ? virtual_duration{0} : lengths_.empty() ? fixed_ : lengths_[client.value];
  }

private:
  bool repeats_ = false;
  virtual_duration fixed_{0};
  std::vector<virtual_duration> lengths_; // by client; empty: `fixed_` holds for all
};

} // namespace mneme
