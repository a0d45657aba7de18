#include "tools/study/benchmark_rows.hpp"
#include "runtime/base/atomic_file.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *rows_folder = "rows", *base_folder = "base";

fs::path rows_file(const fs::path& folder, const benchmark_scenario& of) {
  return folder / rows_folder / of.track / (of.method + ".json");
}

/// Names of the scenarios in a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".toml")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Error for a name that is not in `known`.
tl::unexpected<diagnostics> unknown_name(const char* what, const std::string& name,
                                         const std::vector<std::string>& known) {
  const auto meant = closest_match(name, known);
  std::string all;
  for (const auto& word : known)
    all += (all.empty() ? "" : ", ") + word;
  return failed("", fmt::format("unknown {} '{}' of the benchmark; {}", what, name,
                                meant.empty() ? "expected one of " + all : "did you mean '" + meant + "'?"));
}

benchmark_row row_from(const json& value, const benchmark_scenario& of) {
  benchmark_row row{.track = of.track,
                    .method = of.method,
                    .seed = value.at("seed").get<std::int64_t>(),
                    .scenario_digest = value.at("scenario_digest").get<std::string>(),
                    .run_digest = value.at("run_digest").get<std::string>(),
                    .version = value.at("mneme_version").get<std::string>(),
                    .processor = value.at("processor").get<std::string>(),
                    .digest_epoch = value.at("digest_epoch").get<std::int64_t>()};
  for (const auto& name : benchmark_figures())
    if (value.contains(name))
      row.figures[name] = value.at(name).get<double>();
  return row;
}

json json_of(const benchmark_row& row) {
  json value{{"seed", row.seed},
             {"scenario_digest", row.scenario_digest},
             {"run_digest", row.run_digest},
             {"mneme_version", row.version},
             {"processor", row.processor},
             {"digest_epoch", row.digest_epoch}};
  for (const auto& [name, figure] : row.figures)
    value[name] = figure;
  return value;
}

} // namespace

const std::vector<std::string>& benchmark_figures() {
  static const std::vector<std::string> names{"final_accuracy", "average_incremental_accuracy",
                                              "forgetting",     "upload_bytes",
                                              "download_bytes", "virtual_seconds",
                                              "cpu_seconds"};
  return names;
}

expected<std::vector<benchmark_scenario>> benchmark_scenarios(const fs::path& folder, const std::string& track,
                                                              const std::string& method) {
  const auto tracks = names_in(folder / base_folder);
  if (tracks.empty())
    return failed(folder.string(),
                  "no benchmark; expected a folder with base/TRACK.toml and TRACK/METHOD.toml, such as "
                  "scenarios/benchmark of the source tree; name it with --folder");
  if (!track.empty() && std::find(tracks.begin(), tracks.end(), track) == tracks.end())
    return unknown_name("track", track, tracks);
  std::vector<benchmark_scenario> found;
  std::vector<std::string> methods;
  for (const auto& name : tracks) {
    if (!track.empty() && name != track)
      continue;
    for (const auto& known : names_in(folder / name)) {
      methods.push_back(known);
      if (method.empty() || known == method)
        found.push_back({name, known, folder / name / (known + ".toml")});
    }
  }
  if (found.empty())
    return unknown_name("method", method, methods);
  return found;
}

expected<std::vector<benchmark_row>> read_benchmark_rows(const fs::path& folder, const benchmark_scenario& of) {
  const auto path = rows_file(folder, of);
  std::ifstream file(path);
  if (!file)
    return std::vector<benchmark_row>{};
  try {
    std::vector<benchmark_row> rows;
    for (const auto& value : json::parse(file))
      rows.push_back(row_from(value, of));
    return rows;
  } catch (const json::exception& error) {
    return failed(path.string(),
                  fmt::format("damaged rows of the benchmark: {}; restore the file, or delete it and run "
                              "mneme benchmark run {} {}",
                              error.what(), of.track, of.method));
  }
}

expected<void> write_benchmark_rows(const fs::path& folder, const benchmark_scenario& of,
                                    const std::vector<benchmark_row>& rows) {
  auto stored = read_benchmark_rows(folder, of);
  if (!stored)
    return tl::unexpected(stored.error());
  std::map<std::int64_t, benchmark_row> by_seed;
  for (const auto& row : *stored)
    by_seed[row.seed] = row;
  for (const auto& row : rows)
    by_seed[row.seed] = row;
  json values = json::array();
  for (const auto& [seed, row] : by_seed)
    values.push_back(json_of(row));
  fs::create_directories(rows_file(folder, of).parent_path());
  write_atomically(rows_file(folder, of), values.dump(1) + "\n");
  return {};
}

benchmark_row benchmark_row_of(const benchmark_scenario& of, const stored_run& run) {
  const auto processor = run.machine.find("processor");
  benchmark_row row{.track = of.track,
                    .method = of.method,
                    .seed = run.seed,
                    .scenario_digest = run.scenario_digest,
                    .run_digest = run.run_digest,
                    .version = run.version,
                    .processor = processor == run.machine.end() ? "" : processor->second,
                    .digest_epoch = run.digest_epoch};
  for (const auto& name : benchmark_figures())
    if (const auto figure = run.figures.find(name); figure != run.figures.end() && figure->second)
      row.figures[name] = *figure->second;
  return row;
}

} // namespace mneme
