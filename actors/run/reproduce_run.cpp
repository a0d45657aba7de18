#include "actors/run/reproduce_run.hpp"
#include "actors/run/input_files.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/scenario/read.hpp"
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <system_error>
namespace mneme {
namespace {

namespace fs = std::filesystem;

expected<run_origin> origin_of(const fs::path& folder) {
  if (std::error_code none; !fs::is_directory(folder, none))
    return failed(
        "", fmt::format("'{}' is not a folder; expected the folder of a run, written by mneme run", folder.string()));
  return parse_origin(folder / "checkpoint" / "run.json");
}

} // namespace

expected<scenario> read_run_scenario(const fs::path& folder) {
  const auto origin = origin_of(folder);
  if (!origin)
    return tl::unexpected(origin.error());
  auto read = read_scenario(folder / "scenario.toml", {});
  if (!read)
    return tl::unexpected(read.error());
  read->value.name = origin->scenario;
  if (auto changed = check_input_files(*origin, read->value); !changed.empty())
    return tl::unexpected(std::move(changed));
  if (const auto now = scenario_digest(read->value); now != origin->scenario_digest)
    return failed((folder / "scenario.toml").string(),
                  fmt::format("differs from the scenario of the run: its digest is {}, and was {}; the file or a file "
                              "that it names was changed, or another version of mneme ran it",
                              now, origin->scenario_digest));
  return read->value;
}

expected<run_summary> reproduce_run(const fs::path& folder, const run_options& options) {
  const auto settings = read_run_scenario(folder);
  if (!settings)
    return tl::unexpected(settings.error());
  auto summary = run_simulation(*settings, options);
  if (!summary)
    return summary;
  const auto before = origin_of(folder), now = origin_of(options.out);
  if (before && now && !before->data_digest.empty() && before->data_digest != now->data_digest)
    return failed(
        folder.string(),
        fmt::format("the data set '{}' has changed since the run: its digest was {} and is {}; restore the old files",
                    settings->data.name, before->data_digest, now->data_digest));
  return summary;
}

temp_folder::temp_folder() {
  auto pattern = (fs::temp_directory_path() / "mneme-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    throw std::system_error(errno, std::generic_category(), "cannot create a folder like '" + pattern + "'");
  path_ = pattern;
}

temp_folder::~temp_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

} // namespace mneme
