#include "runtime/settings/scenario.hpp"
namespace mneme {

std::string scenario::where(const std::string& key) const {
  const auto found = key_places.find(key);
  return found == key_places.end() ? file : found->second;
}

} // namespace mneme
