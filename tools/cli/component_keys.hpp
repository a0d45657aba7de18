/// component_keys: the keys of methods and models.
#pragma once
#include "runtime/options/keys.hpp"
namespace mneme {

/// Calls `visit(entry, keys)` for each method or model. The keys are valid only during the call.
template <class Entries, class Take>
void for_own_keys(const Entries& entries, const Take& visit) {
  for (const auto& entry : entries) {
    const auto item = entry.make();
    key_table own;
    item->keys(own);
    visit(entry, own);
  }
}

} // namespace mneme
