#include "runtime/scenario/checks.hpp"
#include "runtime/scenario/sections.hpp"
#include <fmt/format.h>
namespace mneme {

std::vector<remark> unread_keys(const scenario& settings) {
  auto bound = settings; // conditions read the members to which the keys are bound
  std::vector<remark> unread;
  for (const auto& section : sections_of(bound))
    for (const auto& condition : section.keys.conditions()) {
      const auto key = section.name + "." + condition.key;
      if (!condition.holds)
        unread.push_back({{key}, fmt::format("{} has no effect: {} read it", key, condition.readers)});
    }
  return unread;
}

} // namespace mneme
