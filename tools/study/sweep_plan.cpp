#include "tools/study/sweep_plan.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

constexpr std::size_t runs_max = 100'000;

void add_new(diagnostics& to, const diagnostics& added) {
  for (const auto& problem : added)
    if (std::find(to.begin(), to.end(), problem) == to.end())
      to.push_back(problem);
}

/// All combinations of the axes' values; the last axis varies fastest.
std::vector<overrides> grid_points(const std::vector<sweep_axis>& axes) {
  std::vector<overrides> points(1);
  for (const auto& axis : axes) {
    std::vector<overrides> longer;
    for (const auto& point : points)
      for (const auto& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.key, value);
      }
    points = std::move(longer);
  }
  return points;
}

diagnostics validate_request(const sweep_request& request) {
  diagnostics errors;
  if (request.scenarios.empty())
    errors.push_back({"", "no scenario given; expected mneme sweep SCENARIO..., as in mneme sweep "
                          "scenarios/quickstart.toml --over rounds.cohort=5,10 --seeds 1-3"});
  std::set<std::string> keys, names;
  double runs = static_cast<double>(request.scenarios.size() * std::max<std::size_t>(1, request.seeds.size()));
  for (const auto& axis : request.axes) {
    runs *= static_cast<double>(axis.values.size());
    if (!keys.insert(axis.key).second)
      errors.push_back({"", "the key '" + axis.key + "' is given twice; give all of its values together"});
    if (axis.key == "seed" && !request.seeds.empty())
      errors.push_back({"", "seeds are given twice; remove the key 'seed'"});
  }
  if (runs > static_cast<double>(runs_max))
    errors.push_back({"", fmt::format("a grid of {:.0f} runs; expected at most {}", runs, runs_max)});
  for (const auto& file : request.scenarios)
    if (!names.insert(file.stem().string()).second)
      errors.push_back({file.string(), "a second scenario called '" + file.stem().string() +
                                           "', which tables cannot distinguish; give it another file name"});
  return errors;
}

/// Replaces --set with --over in errors about keys of the grid.
diagnostics with_option_named(diagnostics problems, const overrides& point) {
  for (auto& problem : problems)
    for (const auto& [key, value] : point)
      if (problem.where == "--set" && problem.text.find(key.substr(key.find('.') + 1)) != std::string::npos)
        problem.where = "--over";
  return problems;
}

class sweep_planner {
public:
  explicit sweep_planner(const sweep_request& request) : request_(request) {}

  sweep_plan plan() {
    plan_.errors = validate_request(request_);
    if (!plan_.errors.empty())
      return std::move(plan_);
    for (const auto& file : request_.scenarios)
      for (const auto& point : grid_points(request_.axes))
        add_point(file, point);
    if (request_.scenarios.size() > 1)
      plan_.by.emplace_back("scenario");
    for (const auto& axis : request_.axes)
      if (axis.key != "seed")
        plan_.by.push_back(axis.key);
    if (plan_.by.empty())
      plan_.by.emplace_back("scenario");
    return std::move(plan_);
  }

private:
  void add_point(const std::filesystem::path& file, const overrides& point) {
    auto label = file.stem().string();
    for (const auto& [key, value] : point)
      label += " " + key + "=" + value;
    auto seeds = std::vector<std::optional<std::int64_t>>(request_.seeds.begin(), request_.seeds.end());
    if (seeds.empty())
      seeds.emplace_back();
    for (const auto& seed : seeds) {
      auto over = request_.settings;
      over.insert(over.end(), point.begin(), point.end());
      if (seed)
        over.emplace_back("seed", std::to_string(*seed));
      auto read = read_scenario(file, over); // each run needs its own method object
      if (!read) {
        add_new(plan_.errors, with_option_named(read.error(), point));
        return; // skipped, because other seeds have the same problems
      }
      add_new(plan_.warnings, with_option_named(std::move(read->warnings), point));
      add_run(std::move(read->value), label);
    }
  }

  void add_run(scenario settings, const std::string& point) {
    planned_run run{
        .digest = scenario_digest(settings), .label = fmt::format("{} seed={}", point, settings.seed), .point = point};
    run.scenario = std::move(settings);
    if (const auto [at, is_new] = labels_.emplace(run.digest, run.label); !is_new)
      plan_.errors.push_back({"", "'" + at->second + "' and '" + run.label +
                                      "' are the same run: their differences change no result; remove one of them"});
    plan_.runs.push_back(std::move(run));
  }

  const sweep_request& request_;
  sweep_plan plan_;
  std::map<std::string, std::string> labels_; // by digest
};

} // namespace

sweep_plan check_sweep_points(const sweep_request& request) { return sweep_planner(request).plan(); }

expected<sweep_plan> plan_sweep(const sweep_request& request) {
  auto plan = check_sweep_points(request);
  return plan.errors.empty() ? expected<sweep_plan>(std::move(plan)) : tl::unexpected(std::move(plan.errors));
}

} // namespace mneme
