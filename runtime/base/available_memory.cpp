#include "runtime/base/available_memory.hpp"
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// The number at the start of a text, after white space. Returns nullopt if there is none, as in "max".
std::optional<std::int64_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> number_of_file(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  return std::getline(in, text) ? number_in(text) : std::nullopt;
}

/// Returns the number after `name` in a file with lines such as "name: 12 kB" or "name 12"; nullopt if it is missing.
std::optional<std::int64_t> number_behind(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto value = std::string_view(line).substr(std::min(name.size(), line.size()));
    if (line.starts_with(name) && !value.empty() && (value.front() == ':' || value.front() == ' '))
      return number_in(value.substr(1));
  }
  return std::nullopt;
}

/// Names of a control group's memory files, for cgroup version 1 or 2.
struct group_files {
  const char *limit, *usage, *droppable;
};
constexpr group_files version_2{"memory.max", "memory.current", "inactive_file"};
constexpr group_files version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void take_limit(memory_budget& least, const fs::path& group, const std::string& name, const group_files& files) {
  const auto limit = number_of_file(group / files.limit), used = number_of_file(group / files.usage);
  if (!limit || !used)
    return;
  const auto droppable = number_behind(group / "memory.stat", files.droppable).value_or(0);
  const auto left = std::max<std::int64_t>(*limit - std::max<std::int64_t>(*used - droppable, 0), 0);
  if (left < least.bytes)
    least = {left, "left below the memory limit of the control group " + name};
}

/// Applies the limits of the group `name` below `root`, and of all its ancestors. Inside a container, `name` may be a
/// path outside of the container; `root` itself is then the process's group.
void take_limits(memory_budget& least, const fs::path& root, const fs::path& name, const group_files& files) {
  for (auto at = name.relative_path();; at = at.parent_path()) {
    take_limit(least, root / at, (fs::path("/") / at).string(), files);
    if (at.empty())
      return;
  }
}

} // namespace

memory_budget available_memory(const fs::path& proc, const fs::path& groups) {
  memory_budget least{std::numeric_limits<std::int64_t>::max(), "unknown"};
  if (const auto free = number_behind(proc / "meminfo", "MemAvailable"))
    least = {*free * 1024, "free on this machine"};
  std::ifstream lines(proc / "self" / "cgroup");
  for (std::string line; std::getline(lines, line);) { // "0::/a/b" or "7:cpu,memory:/a/b"
    const auto first = line.find(':'), second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos)
      continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,")
      take_limits(least, groups, line.substr(second + 1), version_2);
    else if (controllers.find(",memory,") != std::string::npos)
      take_limits(least, groups / "memory", line.substr(second + 1), version_1);
  }
  return least;
}

} // namespace mneme
