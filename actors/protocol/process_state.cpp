#include "actors/protocol/process_state.hpp"
#include "runtime/base/check.hpp"
#include <caf/telemetry/collector/prometheus.hpp>
#include <caf/telemetry/importer/process.hpp>
namespace mneme {
namespace {

/// Escapes a label value, because CAF's metrics writer does not.
std::string escape_label(const std::string& value) {
  std::string text;
  for (const char c : value)
    if (c == '\n')
      text += "\\n";
    else if (c == '\\' || c == '"')
      text += {'\\', c};
    else
      text += c;
  return text;
}

/// Calls `set` with the labels in the form that CAF expects.
template <class Set>
void with_labels(const metric_labels& labels, Set set) {
  std::vector<std::string> escaped;
  escaped.reserve(labels.size()); // the views must stay valid
  std::vector<caf::telemetry::label_view> views;
  for (const auto& [name, value] : labels)
    views.emplace_back(name, escaped.emplace_back(escape_label(value)));
  set(caf::make_span(std::as_const(views)));
}

} // namespace

template <class Value>
void set_gauge(metric_registry& to, const metric_name& of, Value value, const metric_labels& labels) {
  with_labels(labels, [&](caf::span<const caf::telemetry::label_view> views) {
    to.gauge_instance<Value>(of.prefix, of.name, views, of.help, of.unit)->value(value);
  });
}

template <class Value>
void set_counter(metric_registry& to, const metric_name& of, Value value, const metric_labels& labels) {
  MNEME_CHECK(value >= 0, of.name, value);
  with_labels(labels, [&](caf::span<const caf::telemetry::label_view> views) {
    auto* const counter = to.counter_instance<Value>(of.prefix, of.name, views, of.help, of.unit, true);
    if (value > 0) // CAF requires a positive increment
      counter->inc(value);
  });
}

template void set_gauge(metric_registry&, const metric_name&, std::int64_t, const metric_labels&);
template void set_gauge(metric_registry&, const metric_name&, double, const metric_labels&);
template void set_counter(metric_registry&, const metric_name&, std::int64_t, const metric_labels&);
template void set_counter(metric_registry&, const metric_name&, double, const metric_labels&);

void add_process_metrics(metric_registry& to) { caf::telemetry::importer::process(to).update(); }

std::string prometheus_text(const metric_registry& metrics) {
  caf::telemetry::collector::prometheus collector;
  const auto text = collector.collect_from(metrics);
  return {text.begin(), text.end()};
}

} // namespace mneme
