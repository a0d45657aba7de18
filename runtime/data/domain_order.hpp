/// domain_order: assigns the domains of a data set to tasks 1, 2, ...
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Domain numbers by task, from `tasks.domain_order`: at least `tasks.count` of them, each once. A list has names of
/// domains; if no entry is such a name, the entries are domain numbers from 0. Fails on an unknown domain, on a
/// duplicate, and on a list shorter than tasks.count.
/// @param names of the domains, by number @pre tasks.count <= names.size()
[[nodiscard]] expected<std::vector<std::int32_t>> domain_order(const scenario& from,
                                                               const std::vector<std::string>& names);

} // namespace mneme
