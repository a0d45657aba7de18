/// registered<Entry>: entries that registration objects add before main(). These are the only globals of mneme.
#pragma once
#include <algorithm>
#include <vector>
namespace mneme {

template <class Entry>
std::vector<Entry>& registered() {
  static std::vector<Entry> entries;
  return entries;
}

/// Returns a copy sorted by name, since the order of registration depends on the linker.
template <class Entry>
std::vector<Entry> sort_by_name() {
  auto entries = registered<Entry>();
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

} // namespace mneme
