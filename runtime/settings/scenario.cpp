#include "runtime/settings/scenario.hpp"
namespace mneme {

std::string scenario::where(const std::string& key) const {
  const auto found = given.find(key);
  return found == given.end() ? file : found->second;
}

} // namespace mneme
