#include "tools/cli/user_data.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/formats/array_file.hpp"
#include "runtime/options/unit_text.hpp"
#include "tools/cli/temporary_file.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr double usual_test_share = 0.2;

struct data_reading {
  data_section section{};
  std::uint64_t seed = 1;
  diagnostics warnings{};
};

/// Applies the settings of [data] and `seed` to `section`.
expected<data_reading> with_settings(const data_section& section, const overrides& settings) {
  overrides chosen;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(chosen),
               [](const auto& setting) { return setting.first == "seed" || setting.first.starts_with("data."); });
  if (chosen.empty())
    return data_reading{.section = section};
  const temporary_file file(".toml");
  write_atomically(file.path(), fmt::format("[data]\n{}[strategy]\nname = \"fedavg\"\n", data_lines(section)));
  auto read = read_scenario(file.path(), chosen);
  if (!read)
    return tl::unexpected(without_places_in(file.path(), std::move(read.error())));
  return data_reading{.section = read->value.data,
                      .seed = read->value.data_seed(),
                      .warnings = without_places_in(file.path(), std::move(read->warnings))};
}

} // namespace

std::optional<data_section> section_of_path(const std::filesystem::path& path) {
  std::error_code ignored;
  data_section section;
  const auto place = std::filesystem::absolute(path, ignored);
  const auto ending = file_ending(path);
  if (std::filesystem::is_directory(path, ignored)) {
    const bool has_arrays = !array_files(path, {"train_x"}).empty();
    section.name = has_arrays ? "arrays" : "folder";
    (has_arrays ? section.file : section.root) = place;
    section.side = 0;
    return section;
  }
  if (!std::filesystem::exists(path, ignored)) // reading rejects files of other types
    return std::nullopt;
  section.file = place;
  section.name = ending == ".csv" ? "csv" : "arrays";
  if (ending == ".csv" || ending == ".npz" || ending == ".npy" || ending == ".safetensors" || ending == ".parquet")
    return section;
  return std::nullopt;
}

expected<user_data_report> inspect_data_section(data_section section, const overrides& settings) {
  auto read = with_settings(section, settings);
  if (!read)
    return tl::unexpected(std::move(read.error()));
  user_data_report look{
      .section = read->section, .rows = load_data(read->section, read->seed), .warnings = std::move(read->warnings)};
  const auto lacks_test = [](const diagnostic& finding) { return finding.text.starts_with("has no test part"); };
  if (look.rows || !std::all_of(look.rows.error().begin(), look.rows.error().end(), lacks_test))
    return look;
  look.has_no_test_part = true;
  look.section.test_share = usual_test_share;
  look.rows = load_data(look.section, read->seed);
  return look;
}

std::string data_lines(const data_section& data) {
  auto text = fmt::format("name = \"{}\"\n", data.name);
  if (!data.root.empty())
    text += fmt::format("root = {}\n", quote_text(data.root.string()));
  if (!data.file.empty())
    text += fmt::format("file = {}\n", quote_text(data.file.string()));
  if (data.test_share > 0.0)
    text += fmt::format("test_share = {}\n", data.test_share);
  return text;
}

diagnostics without_places_in(const std::string& file, diagnostics problems) {
  for (auto& problem : problems)
    if (problem.where.starts_with(file))
      problem.where.clear();
  return problems;
}

} // namespace mneme
