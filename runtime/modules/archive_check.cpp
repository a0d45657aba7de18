#include "runtime/modules/archive_check.hpp"
#include "runtime/modules/code_check.hpp"
#include "runtime/modules/pickle_check.hpp"
#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <set>
namespace mneme {
namespace {

using storage_bytes = std::map<std::string, std::uint64_t, std::less<>>;

/// True for entries that are neither code nor storages and that LibTorch reads or ignores.
bool is_known(std::string_view name) {
  constexpr std::array<std::string_view, 12> names{"data.pkl",
                                                   "constants.pkl",
                                                   "version",
                                                   ".data/version",
                                                   "byteorder",
                                                   ".format_version",
                                                   ".data/serialization_id",
                                                   ".storage_alignment",
                                                   "bytecode.pkl",
                                                   "attributes.pkl",
                                                   "traced_inputs.pkl",
                                                   "mobile_debug_handles.pkl"};
  return name.starts_with("extra/") || name.starts_with("traced_inputs/") ||
         (name.starts_with("code/") && name.ends_with(".debug_pkl")) ||
         std::find(names.begin(), names.end(), name) != names.end();
}

/// The storage key of an entry in `folder`: "12" for "data/12". Returns "" if the entry is no storage.
std::string_view storage_key(std::string_view name, std::string_view folder) {
  if (!name.starts_with(folder))
    return "";
  const auto key = name.substr(folder.size());
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  return std::all_of(key.begin(), key.end(), is_digit) ? key : std::string_view{};
}

std::string to_lower(std::string name) {
  for (auto& letter : name)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return name;
}

/// The entries of an archive, grouped by purpose.
struct sorted_entries {
  std::vector<const zip_entry*> code{}, pickles{};
  storage_bytes data{}, constants{};
  std::vector<std::string> refusals{};
};

sorted_entries sorted(const std::vector<zip_entry>& entries) {
  sorted_entries by_kind;
  const auto root = entries.empty() ? std::string{} : entries[0].name.substr(0, entries[0].name.find('/') + 1);
  std::set<std::string> names;
  for (const auto& entry : entries) {
    const auto name =
        entry.name.starts_with(root) ? std::string_view(entry.name).substr(root.size()) : std::string_view{};
    if (!names.insert(to_lower(entry.name)).second)
      by_kind.refusals.push_back(fmt::format("'{}' is there twice, but for capital letters", entry.name));
    if (const auto key = storage_key(name, "data/"); !key.empty())
      by_kind.data[std::string(key)] = entry.bytes;
    else if (const auto constant = storage_key(name, "constants/"); !constant.empty())
      by_kind.constants[std::string(constant)] = entry.bytes;
    else if (name.starts_with("code/") && name.ends_with(".py"))
      by_kind.code.push_back(&entry);
    else if (name == "data.pkl" || name == "constants.pkl")
      by_kind.pickles.push_back(&entry);
    else if (!is_known(name))
      by_kind.refusals.push_back(fmt::format("'{}' is no entry that torch.jit.save writes", entry.name));
  }
  return by_kind;
}

} // namespace

std::vector<std::string> archive_errors(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries) {
  auto by_kind = sorted(entries);
  auto& refusals = by_kind.refusals;
  std::uint64_t text_bytes = 0;
  for (const auto* of_kind : {&by_kind.code, &by_kind.pickles})
    for (const auto* entry : *of_kind)
      text_bytes += std::min(entry->bytes, code_bytes_max + 1);
  if (text_bytes > code_bytes_max)
    refusals.push_back(fmt::format("it has more than {} bytes of code and pickles", code_bytes_max));
  if (!refusals.empty())
    return refusals;
  std::vector<code_file> code;
  for (const auto* entry : by_kind.code)
    code.push_back({.name = entry->name, .text = zip_content(file, *entry)});
  refusals = code_errors(code);
  for (const auto* entry : by_kind.pickles) {
    const bool is_module = entry->name.ends_with("/data.pkl");
    auto refusal = pickle_error(zip_content(file, *entry), is_module ? pickle_root::module : pickle_root::constants,
                                is_module ? by_kind.data : by_kind.constants);
    if (!refusal.empty())
      refusals.push_back(entry->name + ": " + refusal);
  }
  return refusals;
}

} // namespace mneme
