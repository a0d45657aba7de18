/// process_state: metrics and readiness of this process, for monitoring systems.
#pragma once
#include <caf/telemetry/metric_registry.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
namespace mneme {

using metric_registry = caf::telemetry::metric_registry;

/// State of a process. The functions are called on any thread.
struct process_state {
  std::function<std::string()> metrics{}; ///< In Prometheus' text format.
  std::function<std::string()> pending{}; ///< Reason why the process is not ready, in one line. Empty if it is ready.
};

/// Name and meaning of a metric. The exported name is PREFIX_NAME_UNIT; names of counters end in "_total".
struct metric_name {
  std::string_view prefix, name, help;
  std::string_view unit = "1"; ///< "1": no unit.
};

using metric_labels = std::vector<std::pair<std::string_view, std::string>>;

/// Sets a gauge. Value: std::int64_t or double.
template <class Value>
void set_gauge(metric_registry& to, const metric_name& of, Value value, const metric_labels& labels = {});
/// Sets a counter. Value: std::int64_t or double. @pre value >= 0, and the registry does not have this counter
template <class Value>
void set_counter(metric_registry& to, const metric_name& of, Value value, const metric_labels& labels = {});

/// Memory and CPU time of this process.
void add_process_metrics(metric_registry& to);

/// All metrics of a registry in Prometheus' text format, whose content type is prometheus_type.
inline constexpr const char* prometheus_type = "text/plain; version=0.0.4; charset=utf-8";
[[nodiscard]] std::string prometheus_text(const metric_registry& metrics);

} // namespace mneme
