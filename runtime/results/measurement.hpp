/// measurement: a metric of a running process, for monitoring systems.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A metric with one value per set of labels.
struct measurement {
  enum class kind : std::uint8_t {
    gauge,   ///< The value can increase and decrease.
    counter, ///< The value never decreases; the name ends in "_total".
  };
  struct sample {
    std::vector<std::pair<std::string, std::string>> labels{};
    double value = 0.0;
  };
  std::string name{}, help{};
  kind of_kind = kind::gauge;
  std::vector<sample> samples{};
};

} // namespace mneme
