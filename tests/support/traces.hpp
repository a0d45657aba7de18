/// traces: scenarios whose virtual times can be computed by hand, and their events.
#pragma once
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <sstream>
namespace mneme::test {

// Three clients, four rows each, a linear net of 2 x 1 + 2 parameters = 16 bytes:
//
//              download            training      upload                 arrives, from its dispatch
//   client 0   0.1 + 0.5 = 0.6 s   4 / 4 = 1 s   0.1 + 1.0 = 1.1 s      2.7 s
//   client 1   0.1 + 0.5 = 0.6 s   4 / 2 = 2 s   0.1 + 0.0 = 0.1 s      2.7 s
//   client 2   0.1 + 0.5 = 0.6 s   4 / 1 = 4 s   0.1 + 2.0 = 2.1 s      6.7 s
//
// 128 bits take 1 s at 0.000128 Mbit/s; a bandwidth of 0 is instantaneous.
inline const scenario_text three_clients =
    made_scenario({{"seed", 1},
                   {"data.shape", raw_toml("[1]")},
                   {"data.classes", 2},
                   {"data.rows", 12},
                   {"tasks.kind", "single"},
                   {"partition.kind", "iid"},
                   {"clients.count", 3},
                   {"rounds.per_task", 2},
                   {"rounds.cohort", 3},
                   {"devices.rows_per_second", raw_toml("[4.0, 2.0, 1.0]")},
                   {"devices.uplink_mbit", raw_toml("[0.000128, 0.0, 0.000064]")},
                   {"devices.downlink_mbit", 0.000256},
                   {"devices.latency", "100 ms"},
                   {"model.name", "linear"},
                   {"training.epochs", 1},
                   {"evaluation.every", 0}});

/// Lines of events.csv without header, reduced to "time actor event client"; times truncated to a tenth.
inline std::string events_of(const std::string& csv) {
  std::istringstream in(csv);
  std::string line, text;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');)
      fields.push_back(cell);
    auto time = fields.at(0).substr(0, fields.at(0).find('.') + 2);
    text += time + " " + fields.at(1) + " " + fields.at(2) + (fields.at(3).empty() ? "" : " " + fields.at(3)) + "\n";
  }
  return text;
}

} // namespace mneme::test
