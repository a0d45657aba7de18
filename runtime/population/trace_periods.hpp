/// trace_periods: length of each client's trace, if traces repeat.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/population/client_table.hpp"
#include "runtime/settings/scenario.hpp"
#include <fmt/format.h>
#include <vector>
namespace mneme {

class trace_periods {
public:
  /// Periods for traces that do not repeat.
  trace_periods() = default;
  /// Periods that the scenario sets. @param clients number of clients of the run
  explicit trace_periods(const devices_section& devices, std::int64_t clients)
      : repeats_(devices.trace_end == trace_end_rule::repeat), fixed_(devices.trace_period) {
    if (repeats_ && fixed_.count() == 0)
      lengths_.resize(static_cast<std::size_t>(clients));
  }

  /// Records that a span of the client's trace ends at `ends_s` seconds; the span's line in the file may state the
  /// trace's period. Returns an error if the trace would repeat before its last span has ended, else "".
  std::string extend(client_id client, double ends_s, std::optional<double> period_s) {
    if (period_s && *period_s > 0.0 && *period_s < ends_s)
      return fmt::format("to = {}, period = {}: expected a period that does not end before its spans", ends_s,
                         *period_s);
    if (repeats_ && fixed_.count() > 0 && rounded_up(ends_s) > fixed_)
      return fmt::format("to = {}: expected no span that ends after devices.trace_period = {} s", ends_s,
                         in_seconds(virtual_time(fixed_)));
    if (!lengths_.empty())
      lengths_[client.value] = std::max(lengths_[client.value], rounded_up(std::max(ends_s, period_s.value_or(0.0))));
    return {};
  }
  [[nodiscard]] bool repeats() const noexcept { return repeats_; }
  /// Period of the client's trace; 0 if it does not repeat.
  [[nodiscard]] virtual_duration length(client_id client) const {
    return !repeats_ ? virtual_duration{0} : lengths_.empty() ? fixed_ : lengths_[client.value];
  }

private:
  bool repeats_ = false;
  virtual_duration fixed_{0};
  std::vector<virtual_duration> lengths_; // indexed by client; empty: all clients have the period fixed_
};

} // namespace mneme
