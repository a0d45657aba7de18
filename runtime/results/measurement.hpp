/// measurement: a metric of a running run or node, for monitoring systems.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// A metric with one value for each set of labels.
struct measurement {
  enum class kind : std::uint8_t {
    gauge,   ///< Can increase and decrease.
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

} // namespace mneme
