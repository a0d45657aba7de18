#include "runtime/scenario/checks.hpp"
#include "runtime/scenario/sections.hpp"
#include <fmt/format.h>
namespace mneme {

std::vector<scenario_finding> find_unused_keys(const scenario& settings) {
  auto bound = settings; // the sections bind keys to a modifiable copy
  std::vector<scenario_finding> unread;
  for (const auto& section : sections_of(bound))
    for (const auto& condition : section.keys.conditions()) {
      const auto key = section.name + "." + condition.key;
      if (!condition.holds)
        unread.push_back({{key}, fmt::format("{} has no effect: {} read it", key, condition.readers)});
    }
  return unread;
}

} // namespace mneme
