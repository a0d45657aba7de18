#include "tools/cli/study_options.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "tools/cli/messages.hpp"
#include "tools/study/suggested_name.hpp"
#include <algorithm>
#include <set>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// Adds the current name of a key that was renamed, and replaces an old word by the current one. The old name stays,
/// because runs of other methods may have a key with this name.
run_filter current_filter(run_filter filter) {
  filter.other_name = current_name(filter.name);
  for (const auto& entry : renamed_keys())
    if (full_new_name(entry) == filter.other_name)
      filter.value = entry.new_word(filter.value);
  return filter;
}

} // namespace

expected<std::vector<run_filter>> where_option(const std::vector<std::string>& texts, const run_catalogue& catalogue) {
  std::vector<run_filter> filters;
  diagnostics errors;
  const auto known = catalogue.names();
  for (const auto& text : texts) {
    const auto filter = parse_filter(text);
    if (!filter) {
      append(errors, filter.error());
      continue;
    }
    const auto is_known = [&](const std::string& name) {
      return known.empty() || std::find(known.begin(), known.end(), name) != known.end();
    };
    filters.push_back(current_filter(*filter));
    if (is_known(filter->name) || is_known(filters.back().other_name))
      continue;
    errors.push_back(
        {"", "--where '" + text + "': no run has '" + filter->name + "'; " +
                 name_suggestion(filter->name, known, "expected a scenario key or a field of summary.json")});
  }
  return errors.empty() ? expected<std::vector<run_filter>>(std::move(filters)) : tl::unexpected(std::move(errors));
}

expected<std::vector<stored_run>> select_runs(const std::vector<std::string>& folders,
                                              const std::vector<std::string>& where) {
  std::vector<stored_run> runs;
  diagnostics errors;
  std::set<fs::path> taken;
  const auto add = [&](stored_run run) {
    std::error_code none;
    if (taken.insert(fs::weakly_canonical(run.folder, none)).second)
      runs.push_back(std::move(run));
  };
  if (folders.empty())
    errors.push_back({"", "no run given; expected folders of runs, or a folder that contains runs, such as runs"});
  for (const auto& name : folders) {
    const fs::path folder = fs::path(name).has_filename() ? fs::path(name) : fs::path(name).parent_path();
    std::error_code none;
    if (!fs::is_directory(folder, none) || is_run_folder(folder)) {
      if (!where.empty())
        errors.push_back({name, "is the folder of a run; --where selects runs of a folder that contains runs"});
      auto run = read_stored_run(folder);
      run ? add(std::move(*run)) : append(errors, run.error());
      continue;
    }
    const run_catalogue catalogue(folder);
    print_warnings(catalogue.damage(), warning_style::text);
    const auto filters = where_option(where, catalogue);
    if (!filters) {
      append(errors, filters.error());
      continue;
    }
    auto found = catalogue.find(*filters);
    if (found.empty())
      errors.push_back({name, where.empty() ? "contains no run; expected the folder of a run, or one that contains runs"
                                            : "contains no run that satisfies --where"});
    for (auto& run : found)
      add(std::move(run));
  }
  return errors.empty() ? expected<std::vector<stored_run>>(std::move(runs)) : tl::unexpected(std::move(errors));
}

} // namespace mneme
