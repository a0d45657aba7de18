/// client_class_counts: counts a scenario's training rows by client and class.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct client_class_counts {
  std::vector<std::string> classes{};            ///< Name or number of each label.
  std::vector<std::vector<std::int64_t>> rows{}; ///< [clients][classes] numbers of training rows, over all tasks.
};

/// Loads the data of the scenario and splits them, as a run does. Fails with all errors of the scenario's inputs.
[[nodiscard]] expected<client_class_counts> count_client_classes(const scenario& settings);

} // namespace mneme
