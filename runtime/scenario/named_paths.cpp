#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/sections.hpp"
namespace mneme {

std::vector<named_path> named_paths(scenario settings) {
  std::vector<named_path> paths;
  for (const auto& section : sections_of(settings))
    for (const auto& key : section.keys.all())
      if (const auto* const path = std::get_if<std::filesystem::path*>(&key.target);
          path && !(*path)->empty() && **path != weights_as_drawn)
        paths.push_back({section.name + "." + key.name, **path});
  return paths;
}

} // namespace mneme
