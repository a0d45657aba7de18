#include "runtime/population/link_trace.hpp"
#include "runtime/population/client_table.hpp"
#include "runtime/population/population.hpp"
#include <algorithm>
#include <cmath>
#include <tuple>
namespace mneme {
namespace {

constexpr double bits_per_ns = 1e-3; // bits per ns at 1 Mbit/s

double mbit_of(const link_span& span, link_direction direction) {
  return direction == link_direction::up ? span.uplink_mbit : span.downlink_mbit;
}

} // namespace

link_trace::link_trace(std::vector<link_span> spans, std::int64_t clients, trace_periods periods)
    : spans_(std::move(spans)), first_(static_cast<std::size_t>(clients) + 1), periods_(std::move(periods)) {
  std::sort(spans_.begin(), spans_.end(), [](const link_span& a, const link_span& b) {
    return std::tie(a.client, a.from) < std::tie(b.client, b.from);
  });
  for (const auto& span : spans_)
    ++first_[span.client.value + 1];
  for (std::size_t c = 1; c < first_.size(); ++c)
    first_[c] += first_[c - 1];
}

link_rate link_trace::rate_within(client_id client, link_direction direction, virtual_duration into) const {
  const auto begin = spans_.begin() + first_[client.value], end = spans_.begin() + first_[client.value + 1];
  const virtual_time at(into);
  const auto next = std::partition_point(begin, end, [&](const link_span& span) { return span.to <= at; });
  if (next == end)
    return {.mbit = 0.0, .until = never};
  return next->from <= at ? link_rate{.mbit = mbit_of(*next, direction), .until = next->to}
                          : link_rate{.mbit = 0.0, .until = next->from};
}

link_rate link_trace::rate(client_id client, link_direction direction, virtual_time at) const {
  const auto period = periods_.length(client);
  if (period.count() == 0)
    return rate_within(client, direction, at.time_since_epoch());
  const auto into = at.time_since_epoch() % period, begun = at.time_since_epoch() - into;
  const auto now = rate_within(client, direction, into);
  return {.mbit = now.mbit, .until = add_saturating(std::min(now.until, virtual_time(period)), begun)};
}

double link_trace::bits_of_period(client_id client, link_direction direction) const {
  const auto period = periods_.length(client);
  double bits = 0.0;
  for (auto i = first_[client.value]; i < first_[client.value + 1]; ++i) {
    const auto& span = spans_[i];
    const auto to = std::min(span.to.time_since_epoch(), period);
    if (span.from.time_since_epoch() < to)
      bits += bits_per_ns * mbit_of(span, direction) * static_cast<double>((to - span.from.time_since_epoch()).count());
  }
  return bits;
}

std::optional<virtual_duration> link_trace::transfer_duration(client_id client, link_direction direction,
                                                              std::int64_t bytes, virtual_time at) const {
  auto bits = 8.0 * static_cast<double>(bytes);
  auto now = at;
  if (const auto period = periods_.length(client); period.count() > 0) {
    const auto each = bits_of_period(client, direction);
    if (each <= 0.0)
      return bytes == 0 ? std::optional(virtual_duration{0}) : std::nullopt;
    const auto whole = std::max(std::floor(bits / each) - 1.0, 0.0); // the last periods are computed span by span
    if (whole * static_cast<double>(period.count()) > static_cast<double>((end_of_runs - now).count()))
      return std::nullopt;
    now += period * static_cast<std::int64_t>(whole);
    bits -= whole * each;
  }
  while (bits > 0.0 && now < end_of_runs) {
    const auto current = rate(client, direction, now);
    if (current.until == never)
      return std::nullopt;
    const auto passed = bits_per_ns * current.mbit * static_cast<double>((current.until - now).count());
    if (passed >= bits)
      return now - at + virtual_duration(static_cast<std::int64_t>(std::ceil(bits / (bits_per_ns * current.mbit))));
    bits -= passed;
    now = current.until;
  }
  return bits > 0.0 ? std::nullopt : std::optional(now - at);
}

expected<std::shared_ptr<const link_trace>> read_link_trace(const scenario& from) {
  if (from.devices.link_file.empty())
    return nullptr;
  const auto& file = from.devices.link_file;
  std::vector<std::pair<link_span, std::size_t>> lines;
  trace_periods periods(from.devices, from.clients.count);
  auto errors = read_client_table({.file = file,
                                   .where = from.where("devices.link_file"),
                                   .clients = from.clients.count,
                                   .columns = {"from", "to", "uplink_mbit", "downlink_mbit"},
                                   .optional = {"period"}},
                                  [&](const client_line& line) {
                                    const auto begin = *line.values[0], end = *line.values[1];
                                    if (auto text = validate_span(begin, end); !text.empty())
                                      return text;
                                    const client_id client{line.client};
                                    lines.push_back({{.client = client,
                                                      .from = virtual_time(rounded_up(begin)),
                                                      .to = virtual_time(rounded_up(end)),
                                                      .uplink_mbit = *line.values[2],
                                                      .downlink_mbit = *line.values[3]},
                                                     line.line});
                                    return periods.extend(client, end, line.values[4]);
                                  });
  auto spans = order_spans(file, std::move(lines), errors);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return std::make_shared<const link_trace>(std::move(spans), from.clients.count, std::move(periods));
}

} // namespace mneme
