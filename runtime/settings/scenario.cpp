#include "runtime/settings/scenario.hpp"
namespace mneme {

std::string scenario::where(const std::string& key) const {
  const auto place = key_places.find(key);
  return place == key_places.end() ? file : place->second;
}

} // namespace mneme
