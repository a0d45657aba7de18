/// prometheus_text: measurements in Prometheus' text format (version 0.0.4), for runs and nodes.
#pragma once
#include "runtime/live/live_view.hpp"
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A measurement with one value for each set of labels.
struct measurement {
  enum class kind : std::uint8_t {
    gauge,   ///< Goes up and down.
    counter, ///< Only grows; its name ends in "_total".
  };
  struct sample {
    std::vector<std::pair<std::string, std::string>> labels{};
    double value = 0.0;
  };
  std::string name{}, help{};
  kind of_kind = kind::gauge;
  std::vector<sample> samples{};
};

/// Names and help are the caller's and taken as they are; values of labels may hold anything.
[[nodiscard]] std::string prometheus_text(const std::vector<measurement>& measurements);

/// What a run tells of itself: rounds, clients, traffic, jobs, accuracy. Empty before a run has begun.
[[nodiscard]] std::vector<measurement> measurements_of(const live_run& run);

} // namespace mneme
