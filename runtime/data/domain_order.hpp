/// domain_order: assigns the domains of a data set to tasks 1, 2, ...
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Returns the domain number of each task, as `tasks.domain_order` selects them: at least `tasks.count` different
/// numbers. A list contains names of domains. If none of its entries is a name, the entries are domain numbers from 0.
/// Fails on unknown and duplicate domains, and on lists shorter than tasks.count.
/// @param names names of the domains, by number @pre tasks.count <= names.size()
[[nodiscard]] expected<std::vector<std::int32_t>> domain_order(const scenario& from,
                                                               const std::vector<std::string>& names);

} // namespace mneme
