/// measurement: a figure that a run or a node tells of itself while it works, for programs that collect such figures.
#pragma once
#include <cstdint>
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

} // namespace mneme
