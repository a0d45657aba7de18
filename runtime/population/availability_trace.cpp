#include "runtime/population/availability_trace.hpp"
#include "runtime/population/client_table.hpp"
#include <algorithm>
#include <tuple>
namespace mneme {

availability_trace::availability_trace(std::vector<availability_span> spans, trace_periods periods)
    : periods_(std::move(periods)) {
  std::sort(spans.begin(), spans.end(), [](const availability_span& a, const availability_span& b) {
    return std::tie(a.client, a.from, a.to) < std::tie(b.client, b.from, b.to);
  });
  for (const auto& span : spans)
    if (!spans_.empty() && spans_.back().client == span.client && span.from == spans_.back().to)
      spans_.back().to = span.to;
    else
      spans_.push_back(span);
}

availability_window availability_trace::window(client_id client, virtual_time at) const {
  const auto period = periods_.length(client);
  if (period.count() == 0)
    return window_within(client, at);
  const auto into = at.time_since_epoch() % period, begun = at.time_since_epoch() - into;
  auto window = window_within(client, virtual_time(into));
  if (window.until == never || window.until.time_since_epoch() >= period) { // the state does not change before the end
                                                                            // of the period
    const auto again = window_within(client, {});
    if (again.within != window.within)
      window.until = virtual_time(period);
    else if (again.until == never)
      return {.within = window.within, .until = never};
    else
      window.until = virtual_time(period + std::min(again.until.time_since_epoch(), period));
  }
  return {.within = window.within, .until = add_saturating(window.until, begun)};
}

availability_window availability_trace::window_within(client_id client, virtual_time at) const {
  const auto next = std::partition_point(spans_.begin(), spans_.end(), [&](const availability_span& span) {
    return std::tie(span.client, span.to) <= std::tie(client, at); // the span has ended at this time
  });
  if (next == spans_.end() || next->client != client)
    return {.within = false, .until = never};
  const bool within = next->from <= at;
  return {.within = within, .until = within ? next->to : next->from};
}

expected<std::shared_ptr<const availability_trace>> read_availability_trace(const scenario& from) {
  if (from.devices.availability != device_availability::file)
    return nullptr;
  const auto& file = from.devices.availability_file;
  std::vector<std::pair<availability_span, std::size_t>> lines;
  trace_periods periods(from.devices, from.clients.count);
  auto errors = read_client_table(
      {.file = file,
       .where = from.where("devices.availability_file"),
       .clients = from.clients.count,
       .columns = {"from", "to"},
       .optional = {"period"}},
      [&](const client_line& line) {
        const auto begin = *line.values[0], end = *line.values[1];
        if (auto text = validate_span(begin, end); !text.empty())
          return text;
        const client_id client{line.client};
        lines.push_back(
            {{.client = client, .from = virtual_time(rounded_up(begin)), .to = virtual_time(rounded_up(end))},
             line.line});
        return periods.extend(client, end, line.values[2]);
      });
  auto spans = order_spans(file, std::move(lines), errors);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return std::make_shared<const availability_trace>(std::move(spans), std::move(periods));
}

} // namespace mneme
