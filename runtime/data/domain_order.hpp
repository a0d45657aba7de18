/// domain_order: which of a data set's domains is task 1, 2, ...
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Domains by task, `tasks.domain_order` applied: at least `tasks.count` of them, each once. An entry of a list is the
/// name of a domain. Where no entry is such a name, entries are the numbers of domains, from 0.
/// Fails on an entry that is no domain, on one that occurs twice, and on a list that is shorter than tasks.count.
/// @param names of the domains, by number @pre tasks.count <= names.size()
[[nodiscard]] expected<std::vector<std::int32_t>> domain_order(const scenario& from,
                                                               const std::vector<std::string>& names);

} // namespace mneme
