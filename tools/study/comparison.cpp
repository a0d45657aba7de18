#include "tools/study/comparison.hpp"
#include "tools/study/suggested_name.hpp"
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

const std::vector<std::string> usual_metrics{"final_accuracy", "average_incremental_accuracy", "forgetting",
                                             "upload_bytes", "virtual_seconds"};
constexpr std::string_view time_lead = "time_to_accuracy.", task_lead = "task_";

std::optional<double> as_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

/// Orders numbers by value, and numbers before words.
bool comes_before(const std::string& a, const std::string& b) {
  const auto x = as_number(a), y = as_number(b);
  if (x && y && *x != *y)
    return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

struct label_order {
  bool operator()(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), comes_before);
  }
};

/// True for keys that may differ between runs of one cell, because they do not affect results or follow from the seed.
bool may_differ(const std::string& key) {
  return key == "seed" || key == "title" || key == "data.root" || key == "model.seed_weights" ||
         key.starts_with("worker.") || key.starts_with("checkpoint.");
}

std::string label_of(const stored_run& run, const std::string& key) {
  const auto* value = run_value(run, key);
  return value ? *value : "-";
}

std::vector<std::string> labels_of(const stored_run& run, const std::vector<std::string>& keys) {
  std::vector<std::string> labels;
  for (const auto& key : keys)
    labels.push_back(label_of(run, key));
  return labels;
}

/// Names of the keys in which the runs differ.
std::vector<std::string> differing_keys(const std::vector<const stored_run*>& runs) {
  std::map<std::string, std::set<std::string>> values;
  for (const auto* run : runs)
    for (const auto& [key, value] : run->keys)
      if (!may_differ(key))
        values[key].insert(value);
  std::vector<std::string> keys;
  for (const auto& [key, points] : values)
    if (points.size() > 1)
      keys.push_back(key);
  return keys;
}

/// A warning if rows that are labelled by methods come from other data, tasks or clients, too.
diagnostics unequal_experiments(const std::vector<stored_run>& runs, const std::vector<std::string>& labels) {
  const auto is_of_method = [](const std::string& key) { return key.starts_with("strategy."); };
  if (!std::all_of(labels.begin(), labels.end(), is_of_method))
    return {};
  std::vector<const stored_run*> all;
  for (const auto& run : runs)
    all.push_back(&run);
  auto keys = differing_keys(all);
  constexpr std::array<std::string_view, 6> sections{"data.",    "tasks.",     "partition.",
                                                     "clients.", "enrolment.", "devices."};
  std::erase_if(keys, [&](const std::string& key) {
    return std::none_of(sections.begin(), sections.end(), [&](auto section) { return key.starts_with(section); });
  });
  if (keys.empty())
    return {};
  return {{"", fmt::format("the rows also differ in {}: their differences are not those of the methods alone",
                           fmt::join(keys, ", "))}};
}

using cells_of_runs = std::map<std::vector<std::string>, std::vector<const stored_run*>, label_order>;

cells_of_runs grouped(const std::vector<stored_run>& runs, const std::vector<std::string>& keys) {
  cells_of_runs cells;
  for (const auto& run : runs)
    cells[labels_of(run, keys)].push_back(&run);
  return cells;
}

bool has_mixed_cell(const cells_of_runs& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const auto& cell) { return !differing_keys(cell.second).empty(); });
}

// -- checks of the runs -----------------------------------------------------------------------------------------------

diagnostics unfit_runs(const std::vector<stored_run>& runs) {
  diagnostics errors;
  if (runs.empty())
    errors.push_back({"", "no run to compare; expected folders of runs, as in mneme compare runs/*"});
  const auto first = std::find_if(runs.begin(), runs.end(), [](const auto& run) { return run.status == "done"; });
  if (!runs.empty() && first == runs.end())
    errors.push_back({"", "no run to compare: none is done"});
  for (const auto& run : runs) {
    const auto where = run.folder.string();
    if (run.status == "damaged")
      errors.push_back({where, run.error});
    else if (run.status == "done" && run.version != first->version)
      errors.push_back({where, fmt::format("mixed: computed by mneme {}, but {} by {}; run one of them again",
                                           run.version, first->folder.string(), first->version)});
  }
  return errors;
}

/// Returns a message for each run that is not done and therefore left out of the table.
diagnostics runs_not_done(const std::vector<stored_run>& runs) {
  diagnostics problems;
  for (const auto& run : runs)
    if (run.status != "done" && run.status != "damaged")
      problems.push_back(
          {run.folder.string(), fmt::format("left out: the run is {}{}; finish it with `mneme resume {}`", run.status,
                                            run.error.empty() ? "" : " (" + run.error + ")", run.folder.string())});
  return problems;
}

diagnostics unfit_cells(const cells_of_runs& cells) {
  diagnostics errors;
  for (const auto& [labels, runs] : cells) {
    if (const auto keys = differing_keys(runs); !keys.empty()) {
      errors.push_back(
          {runs.front()->folder.string(), fmt::format("mixed: the {} runs of the cell ({}) differ in {} and not only "
                                                      "in the seed; add the keys in which they differ to --by",
                                                      runs.size(), fmt::join(labels, ", "), fmt::join(keys, ", "))});
      continue;
    }
    std::map<std::int64_t, const stored_run*> by_seed;
    for (const auto* run : runs)
      if (const auto [at, is_new] = by_seed.emplace(run->seed, run); !is_new)
        errors.push_back({run->folder.string(), fmt::format("the same scenario with the same seed {} as {}; leave one "
                                                            "of them out",
                                                            run->seed, at->second->folder.string())});
  }
  return errors;
}

diagnostics unknown_keys(const std::vector<stored_run>& runs, const std::vector<std::string>& keys) {
  diagnostics errors;
  for (const auto& key : keys) {
    if (std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return run_value(run, key) != nullptr; }))
      continue;
    std::set<std::string> known;
    for (const auto& run : runs)
      for (const auto& [name, value] : run.keys)
        known.insert(name);
    errors.push_back(
        {"", "no run has the scenario key '" + key + "'; " + name_suggestion(key, {known.begin(), known.end()})});
  }
  return errors;
}

// -- metrics ----------------------------------------------------------------------------------------------------------

bool less_is_better(const std::string& metric) {
  static const std::set<std::string> costs{"late_uploads", "dropped", "peak_rss_bytes"};
  return metric.starts_with("forgetting") || metric.starts_with(time_lead) || metric.ends_with("_bytes") ||
         metric.ends_with("_seconds") || metric.starts_with("staleness") || costs.contains(metric);
}

/// Number after `lead` in the name of a metric; nullopt if the name does not begin with `lead`.
std::optional<double> argument_of(const std::string& metric, std::string_view lead) {
  return metric.starts_with(lead) ? as_number(std::string_view(metric).substr(lead.size())) : std::nullopt;
}

bool is_metric(const std::vector<stored_run>& runs, const std::string& metric) {
  const auto has_task = [task = argument_of(metric, task_lead)](const stored_run& run) {
    const auto tasks = run.figures.find("tasks");
    return task && *task >= 1.0 && *task == std::floor(*task) && tasks != run.figures.end() &&
           *task <= tasks->second.value_or(0.0);
  };
  return argument_of(metric, time_lead) || std::any_of(runs.begin(), runs.end(), [&](const auto& run) {
           return run.figures.contains(metric) || has_task(run);
         });
}

/// Value of a metric; nullopt if the run has none.
expected<std::optional<double>> value_of(const stored_run& run, const std::string& metric) {
  if (const auto figure = run.figures.find(metric); figure != run.figures.end())
    return figure->second;
  const auto target = argument_of(metric, time_lead), task = argument_of(metric, task_lead);
  if (!target && !task)
    return std::nullopt;
  const auto evaluations = read_evaluations(run.folder);
  if (!evaluations)
    return tl::unexpected(evaluations.error());
  if (target)
    return times_to({*target}, *evaluations).front().seconds;
  const auto at = static_cast<std::size_t>(*task) - 1;
  if (evaluations->empty() || at >= evaluations->back().accuracy_per_task.size())
    return std::nullopt;
  return evaluations->back().accuracy_per_task[at];
}

void add_differences(comparison& table) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto& base = table.rows[table.baseline].cells[c].by_seed;
    for (auto& row : table.rows) {
      std::vector<double> differences;
      for (const auto& [seed, value] : row.cells[c].by_seed)
        if (const auto other = base.find(seed); other != base.end())
          differences.push_back(value - other->second);
      row.cells[c].difference = statistics_of(differences);
    }
  }
}

void add_ranks(comparison& table) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::vector<double> sums(table.rows.size(), 0.0);
    std::int64_t seeds = 0;
    for (const auto& [seed, unused] : table.rows.front().cells[c].by_seed) {
      std::vector<double> values;
      for (const auto& row : table.rows)
        if (const auto cell = row.cells[c].by_seed.find(seed); cell != row.cells[c].by_seed.end())
          values.push_back(cell->second);
      if (values.size() < table.rows.size())
        continue;
      const auto ranks = ranks_of(values, table.columns[c].less_is_better);
      for (std::size_t r = 0; r < ranks.size(); ++r)
        sums[r] += ranks[r];
      ++seeds;
    }
    for (std::size_t r = 0; seeds > 0 && r < table.rows.size(); ++r)
      table.rows[r].cells[c].rank = sums[r] / static_cast<double>(seeds);
  }
}

/// Columns of the table: each value of the column key with each metric.
std::vector<compared_column> columns_of(const std::vector<stored_run>& runs, const comparison_request& request,
                                        const std::vector<std::string>& metrics) {
  std::vector<std::string> values;
  for (const auto& run : runs)
    values.push_back(request.columns.empty() ? "" : label_of(run, request.columns));
  std::sort(values.begin(), values.end(), comes_before);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::vector<compared_column> columns;
  for (const auto& value : values)
    for (const auto& metric : metrics)
      columns.push_back({.value = value, .metric = metric, .less_is_better = less_is_better(metric)});
  return columns;
}

/// Computes the cells of a row from its runs. Appends errors in files to `errors`.
compared_row row_of(const std::vector<std::string>& labels, const std::vector<const stored_run*>& runs,
                    const comparison& table, diagnostics& errors) {
  compared_row row{.labels = labels};
  for (const auto* run : runs)
    row.seeds.insert(run->seed);
  for (const auto& column : table.columns) {
    compared_cell cell;
    for (const auto* run : runs) {
      if (!table.column_key.empty() && label_of(*run, table.column_key) != column.value)
        continue;
      const auto value = value_of(*run, column.metric);
      if (!value)
        append(errors, value.error());
      else if (*value)
        cell.by_seed[run->seed] = **value;
    }
    std::vector<double> sample;
    for (const auto& [seed, value] : cell.by_seed)
      sample.push_back(value);
    cell.statistics = statistics_of(sample);
    row.cells.push_back(std::move(cell));
  }
  return row;
}

/// Index of the row of the first scenario in the sweep's order that has runs; 0 if none has.
std::size_t first_row_of(const comparison& table, const std::vector<stored_run>& runs,
                         const std::vector<std::string>& order) {
  for (const auto& digest : order)
    for (const auto& run : runs)
      if (run.scenario_digest == digest) {
        const auto labels = labels_of(run, table.by);
        for (std::size_t row = 0; row < table.rows.size(); ++row)
          if (table.rows[row].labels == labels)
            return row;
      }
  return 0;
}

/// Index of the baseline row, with which all others are compared. Fails if the requested one is missing.
expected<std::size_t> baseline_of(const comparison& table, const std::vector<stored_run>& runs,
                                  const comparison_request& request) {
  if (request.baseline.empty())
    return first_row_of(table, runs, request.sweep_order);
  std::vector<std::string> known;
  for (const auto& row : table.rows)
    known.push_back(fmt::format("{}", fmt::join(row.labels, ",")));
  const auto place = std::find(known.begin(), known.end(), request.baseline);
  if (place != known.end())
    return static_cast<std::size_t>(place - known.begin());
  return failed(
      "", fmt::format("--baseline '{}' is not a row; expected one of {}", request.baseline, fmt::join(known, " | ")));
}

} // namespace

std::vector<std::string> distinguishing_keys(const std::vector<stored_run>& runs) {
  for (const auto& keys : {std::vector<std::string>{"strategy.name"}, std::vector<std::string>{"scenario"}})
    if (!has_mixed_cell(grouped(runs, keys)))
      return keys;
  std::vector<const stored_run*> together;
  for (const auto& run : runs)
    together.push_back(&run);
  return differing_keys(together);
}

std::vector<std::string> metric_names(const std::vector<stored_run>& runs) {
  std::set<std::string> names;
  for (const auto& run : runs)
    for (const auto& [name, value] : run.figures)
      names.insert(name);
  return {names.begin(), names.end()};
}

expected<comparison> compare_runs(const std::vector<stored_run>& given, const comparison_request& request) {
  auto warnings = runs_not_done(given);
  if (auto errors = unfit_runs(given); !errors.empty()) {
    append(errors, warnings);
    return tl::unexpected(std::move(errors));
  }
  std::vector<stored_run> runs;
  std::copy_if(given.begin(), given.end(), std::back_inserter(runs),
               [](const auto& run) { return run.status == "done"; });
  auto keys = request.by.empty() ? distinguishing_keys(runs) : request.by;
  std::erase(keys, request.columns);
  auto every_key = keys;
  if (!request.columns.empty())
    every_key.push_back(request.columns);
  auto errors = unknown_keys(runs, every_key);
  for (const auto& metric : request.metrics)
    if (!is_metric(runs, metric))
      errors.push_back({"", "no run has the metric '" + metric + "'; " + name_suggestion(metric, metric_names(runs))});
  if (errors.empty()) // if there are errors, a missing key would merge cells
    errors = unfit_cells(grouped(runs, every_key));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));

  append(warnings, unequal_experiments(runs, every_key));
  comparison table{.by = keys, .column_key = request.columns, .warnings = std::move(warnings)};
  table.columns = columns_of(runs, request, request.metrics.empty() ? usual_metrics : request.metrics);
  for (const auto& [labels, members] : grouped(runs, keys))
    table.rows.push_back(row_of(labels, members, table, errors));
  const auto baseline = baseline_of(table, runs, request);
  if (!baseline)
    errors.push_back(baseline.error().front());
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  table.baseline = *baseline;
  add_differences(table);
  add_ranks(table);
  return table;
}

} // namespace mneme
