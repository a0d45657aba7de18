/// training_clients: clients of one net that train on a few rows each, from different initial weights.
#pragma once
#include "runtime/training/executor.hpp"
#include "tests/support/learning.hpp"
namespace mneme::test {

inline const shape3 small{3, 10, 9}; ///< Shape of their rows.
inline const std::vector<std::int64_t> ragged{7, 3, 4, 0, 7};

/// One training job per client. @param rows number of rows of each client
inline std::vector<job> clients_of(const model_ref& net, training_options options,
                                   const std::vector<std::int64_t>& rows = ragged) {
  const auto source = drawn_data(40, small, net->classes());
  options.classes = {0, net->classes()};
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = weights_only(initial_weights(*net, k)),
                                         .samples = rows_from(source, static_cast<std::int64_t>(k), rows[k]),
                                         .options = options,
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  return jobs;
}

inline outcomes run_all(const std::vector<job>& jobs) { return make_executor("cpu")->run(jobs); }

} // namespace mneme::test
