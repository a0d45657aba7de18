#include "runtime/base/digest.hpp"
#include "runtime/options/units.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/sections.hpp"
namespace mneme {
namespace {

/// Every key for which `value` has a text, as TOML in section order.
template <class Value>
std::string written(scenario what, Value value) {
  std::string text;
  for (const auto& section : sections_of(what)) {
    std::string lines;
    for (const auto& key : section.keys.all())
      if (const std::string one = value(section.name, key); !one.empty())
        lines += key.name + " = " + one + "\n";
    if (!lines.empty() && !section.name.empty())
      text += (text.empty() ? "[" : "\n[") + section.name + "]\n";
    text += lines;
  }
  return text;
}

/// Equal for files of equal content, wherever they are.
std::string content_text(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed) ? in_quotes(shown(digest_of_file(path.string()))) : "\"\"";
}

std::string digested_text(const std::string& section, const key& one) {
  if (section == "worker" || section == "checkpoint" || (section.empty() && one.name == "title") ||
      (section == "data" && one.name == "root"))
    return {};
  const auto* path = std::get_if<std::filesystem::path*>(&one.target);
  return path ? content_text(**path) : current_text(one);
}

} // namespace

std::string resolved_text(const scenario& what) {
  return written(what, [](const std::string&, const key& one) { return current_text(one); });
}

std::string scenario_digest(const scenario& what) {
  const auto text = written(what, digested_text);
  return shown(digest_of(std::as_bytes(std::span(text))));
}

} // namespace mneme
