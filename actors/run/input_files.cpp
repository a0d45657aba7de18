#include "actors/run/input_files.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/settings/device_profile.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

struct input_file {
  std::string key{};
  fs::path path{};
  std::string digest{};
};

std::vector<input_file> named_inputs(const scenario& settings) {
  std::vector<input_file> inputs;
  std::error_code none;
  for (const auto& [key, path] : named_paths(settings))
    if (key != "data.file" && fs::is_regular_file(path, none))
      inputs.push_back({key, path, hex_text(digest_of_file(path.string()))});
  const auto& devices = settings.devices;
  for (std::size_t i = 0; i < devices.profiles_read.size(); ++i)
    if (const auto& file = devices.profiles.at(i).file; !file.empty())
      inputs.push_back({fmt::format("devices.profiles[{}].file", i), file, devices.profiles_read[i]->content});
  if (auto content = user_data_digest(settings.data); !content.empty()) {
    const bool in_file = data_source_named(settings.data.name).own_file;
    const auto roots = data_roots(settings.data);
    inputs.push_back({in_file ? "data.file" : "data.root",
                      in_file         ? settings.data.file
                      : roots.empty() ? fs::path()
                                      : roots.front() / settings.data.folder,
                      std::move(content)});
  }
  return inputs;
}

/// Size and time of the last change of a file. If the digest of a data set differs, they show which file has changed.
std::string stamp_of(const fs::path& file) {
  std::error_code none;
  const auto bytes = fs::file_size(file, none);
  return fmt::format("{} bytes, {}", bytes, fs::last_write_time(file, none).time_since_epoch().count());
}

std::map<std::string, std::string> data_stamps(const scenario& settings) {
  std::map<std::string, std::string> stamps;
  const auto source = data_source_named(settings.data.name);
  if (!source.files)
    return stamps;
  if (const auto files = find_files(*source.files, settings.data, data_roots(settings.data)))
    for (const auto& file : *files)
      stamps[file.string()] = stamp_of(file);
  return stamps;
}

} // namespace

input_files input_files_of(const scenario& settings) {
  input_files files{.data = data_stamps(settings)};
  for (auto& input : named_inputs(settings))
    files.named[input.key] = std::move(input.digest);
  return files;
}

diagnostics check_input_files(const run_origin& began, const scenario& settings) {
  diagnostics changed;
  for (const auto& input : named_inputs(settings))
    if (const auto before = began.files.find(input.key); before != began.files.end() && before->second != input.digest)
      changed.push_back(
          {input.path.string(), fmt::format("has changed since the run began ({}): its digest was {} and is {}; "
                                            "restore the old content and resume again, or start a new run",
                                            input.key, before->second, input.digest)});
  return changed;
}

std::string find_changed_data_files(const run_origin& began, const scenario& settings) {
  std::string text;
  for (const auto& [file, stamp] : data_stamps(settings))
    if (const auto before = began.data_files.find(file); before == began.data_files.end() || before->second != stamp)
      text += fmt::format("{} {}", text.empty() ? "; changed:" : ",", file);
  return text;
}

} // namespace mneme
