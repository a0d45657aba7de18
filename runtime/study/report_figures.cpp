#include "runtime/study/report_figures.hpp"
#include "runtime/study/comparison.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr std::size_t matrices_max = 12;

/// A value of each step of a run: what x and y are.
using run_points = std::vector<std::pair<double, double>>;

/// The mean of the k-th points of all runs, and least and most of their values.
chart_curve averaged(const std::string& name, std::size_t group, const std::vector<run_points>& runs) {
  chart_curve curve{.name = name, .group = group};
  std::size_t steps = 0;
  for (const auto& points : runs)
    steps = std::max(steps, points.size());
  for (std::size_t k = 0; k < steps; ++k) {
    double x = 0.0, y = 0.0, low = 0.0, high = 0.0, count = 0.0;
    for (const auto& points : runs) {
      if (k >= points.size())
        continue;
      const auto& [at, value] = points[k];
      x += at;
      y += value;
      low = count == 0.0 ? value : std::min(low, value);
      high = count == 0.0 ? value : std::max(high, value);
      count += 1.0;
    }
    curve.points.emplace_back(x / count, y / count);
    if (runs.size() > 1)
      curve.band.push_back({x / count, low, high});
  }
  return curve;
}

/// A curve for each group, of what `points` makes of a run; groups without a point have none.
template <class Points>
std::vector<chart_curve> curves_of(const std::vector<run_group>& groups, Points points) {
  std::vector<chart_curve> curves;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<run_points> each;
    for (const auto& run : groups[g].runs)
      if (run_points made = points(run); !made.empty())
        each.push_back(std::move(made));
    if (!each.empty())
      curves.push_back(averaged(groups[g].name, g, each));
  }
  return curves;
}

template <class X, class Y>
run_points evaluated(const reported_run& run, X x, Y y) {
  run_points points;
  for (const auto& line : run.evaluations)
    points.emplace_back(x(line), y(line));
  return points;
}

template <class X, class Y>
run_points over_course(const reported_run& run, X x, Y y) {
  run_points points;
  for (const auto& bin : run.course)
    points.emplace_back(x(bin), y(bin));
  return points;
}

double round_of(const evaluation_record& line) { return line.round.value + 1.0; }
double seconds_of(const evaluation_record& line) { return in_seconds(line.at); }
double bin_seconds(const timeline_bin& bin) { return in_seconds(bin.at); }

/// Where the tasks of the first run end, but for the last.
template <class X>
std::vector<double> task_ends(const std::vector<run_group>& groups, X x) {
  std::vector<double> ends;
  for (const auto& line : groups.front().runs.front().evaluations)
    if (line.end_of_task)
      ends.push_back(x(line));
  if (!ends.empty())
    ends.pop_back();
  return ends;
}

class figure_maker {
public:
  explicit figure_maker(const std::vector<run_group>& groups) : groups_(groups) {}

  std::vector<report_figure> make() {
    accuracy();
    matrices();
    forgetting();
    enrolment();
    traffic();
    staleness();
    at_work();
    return std::move(figures_);
  }

private:
  void add(line_chart chart) {
    std::erase_if(chart.curves, [](const chart_curve& curve) { return curve.points.empty(); });
    if (!chart.curves.empty())
      figures_.push_back({.text = chart.text, .in_page = svg_of(chart, false), .alone = svg_of(chart, true)});
  }

  void accuracy() {
    const auto value = [](const evaluation_record& line) { return line.accuracy; };
    add({.text = {"accuracy-rounds", "Accuracy over rounds",
                  "Accuracy on the test rows of all tasks seen, in percent, after each evaluated round. Dashed lines "
                  "are the ends of tasks.",
                  "round", "accuracy (%)"},
         .curves = curves_of(groups_, [&](const auto& run) { return evaluated(run, round_of, value); }),
         .whole_x = true,
         .marks = task_ends(groups_, [](const auto& line) { return line.round.value + 1.5; }),
         .y_min = 0.0});
    add({.text = {"accuracy-time", "Accuracy over virtual time",
                  "The same accuracies over the simulated time at which they were reached.", "virtual time (s)",
                  "accuracy (%)"},
         .curves = curves_of(groups_, [&](const auto& run) { return evaluated(run, seconds_of, value); }),
         .marks = task_ends(groups_, seconds_of),
         .y_min = 0.0});
  }

  /// The mean over the runs of a group, row by row.
  void matrices() {
    for (std::size_t g = 0; g < std::min(groups_.size(), matrices_max); ++g) {
      std::vector<std::vector<std::pair<double, double>>> sums; // sum and count
      for (const auto& run : groups_[g].runs)
        for (const auto& line : run.evaluations) {
          if (!line.end_of_task)
            continue;
          sums.resize(std::max<std::size_t>(sums.size(), line.task.value + std::size_t{1}));
          auto& row = sums[line.task.value];
          row.resize(std::max(row.size(), line.accuracy_per_task.size()));
          for (std::size_t s = 0; s < line.accuracy_per_task.size(); ++s) {
            row[s].first += line.accuracy_per_task[s];
            row[s].second += 1.0;
          }
        }
      if (!sums.empty())
        add_matrix(g, sums);
    }
  }

  void add_matrix(std::size_t g, const std::vector<std::vector<std::pair<double, double>>>& sums) {
    heat_map map{.text = {fmt::format("matrix-{}", g + 1), "Accuracy matrix: " + groups_[g].name,
                          "Row t, column s: accuracy in percent on task s just after task t, mean over seeds.", "task",
                          "after task"}};
    for (std::size_t t = 0; t < sums.size(); ++t) {
      map.rows.push_back(std::to_string(t + 1));
      map.columns.push_back(std::to_string(t + 1));
      map.values.emplace_back();
      for (const auto& [sum, count] : sums[t])
        map.values.back().push_back(count > 0.0 ? std::optional(sum / count) : std::nullopt);
    }
    figures_.push_back({.text = map.text, .in_page = svg_of(map, false), .alone = svg_of(map, true)});
  }

  void forgetting() {
    add({.text = {"forgetting", "Forgetting of each task",
                  "How far the accuracy on a task has fallen from its best after any earlier task to the end, in "
                  "points.",
                  "task", "forgetting (points)"},
         .curves = curves_of(groups_,
                             [](const reported_run& run) {
                               std::vector<std::vector<double>> rows;
                               for (const auto& line : run.evaluations)
                                 if (line.end_of_task)
                                   rows.push_back(line.accuracy_per_task);
                               run_points points;
                               for (std::size_t s = 0; s + 1 < rows.size(); ++s) {
                                 std::optional<double> best;
                                 for (std::size_t t = s; t + 1 < rows.size(); ++t)
                                   if (s < rows[t].size())
                                     best = std::max(best.value_or(rows[t][s]), rows[t][s]);
                                 if (best && s < rows.back().size())
                                   points.emplace_back(static_cast<double>(s + 1), *best - rows.back()[s]);
                               }
                               return points;
                             }),
         .whole_x = true});
  }

  void enrolment() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      return run.course.empty()
                 ? evaluated(run, seconds_of, [](const auto& line) { return double(line.clients_enrolled); })
                 : over_course(run, bin_seconds, [](const auto& bin) { return double(bin.clients_enrolled); });
    });
    for (auto& curve : curves)
      curve.stepped = curve.band.empty();
    add({.text = {"enrolment", "Clients and tasks over virtual time",
                  "How many clients are enrolled. Dashed lines are the ends of tasks.", "virtual time (s)",
                  "clients enrolled"},
         .curves = std::move(curves),
         .marks = task_ends(groups_, seconds_of),
         .y_min = 0.0});
  }

  void traffic() {
    constexpr double mebibyte = 1024.0 * 1024.0;
    const auto bytes_curves = [&](auto of_line, auto of_bin) {
      return curves_of(groups_, [&](const reported_run& run) {
        return run.course.empty()
                   ? evaluated(run, round_of, [&](const auto& line) { return double(line.*of_line) / mebibyte; })
                   : over_course(
                         run, [](const auto& bin) { return bin.last.value + 1.0; },
                         [&](const auto& bin) { return double(bin.*of_bin) / mebibyte; });
      });
    };
    auto up = bytes_curves(&evaluation_record::upload_bytes, &timeline_bin::upload_bytes);
    auto down = bytes_curves(&evaluation_record::download_bytes, &timeline_bin::download_bytes);
    for (auto& curve : up)
      curve.name += ", up";
    for (auto& curve : down) {
      curve.name += ", down";
      curve.dashed = true;
      curve.band.clear();
    }
    up.insert(up.end(), down.begin(), down.end());
    add({.text = {"traffic", "Traffic", "Bytes sent since the run began: uploads solid, downloads dashed.", "round",
                  "MiB"},
         .curves = std::move(up),
         .whole_x = true,
         .y_min = 0.0});
  }

  void staleness() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      run_points points;
      const bool asynchronous = run.run.keys.contains("rounds.mode") && run.run.keys.at("rounds.mode") == "async";
      for (const auto& bin : run.course)
        if (asynchronous && bin.client_rounds > 0)
          points.emplace_back(bin.last.value + 1.0,
                              static_cast<double>(bin.staleness_sum) / static_cast<double>(bin.client_rounds));
      return points;
    });
    add({.text = {"staleness", "Staleness",
                  "Server steps between an upload's start and its arrival, mean over all uploads so far.",
                  "server step", "steps"},
         .curves = std::move(curves),
         .whole_x = true,
         .y_min = 0.0});
  }

  /// Uploads that arrive in a virtual second, from the difference of neighbouring bins.
  void at_work() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      run_points points;
      double before_s = 0.0, before = 0.0;
      for (const auto& bin : run.course) {
        const double now_s = in_seconds(bin.at), now = static_cast<double>(bin.client_rounds);
        if (now_s > before_s)
          points.emplace_back(now_s, (now - before) / (now_s - before_s));
        before_s = now_s;
        before = now;
      }
      return points;
    });
    add({.text = {"utilisation", "Utilisation of the federation", "Uploads that arrive within a virtual second.",
                  "virtual time (s)", "uploads per second"},
         .curves = std::move(curves),
         .y_min = 0.0});
  }

  const std::vector<run_group>& groups_;
  std::vector<report_figure> figures_;
};

} // namespace

std::vector<run_group> grouped_runs(std::vector<reported_run> runs) {
  std::vector<stored_run> stored;
  for (const auto& run : runs)
    stored.push_back(run.run);
  const auto keys = telling_keys(stored);
  std::vector<run_group> groups;
  for (auto& run : runs) {
    std::string name;
    for (const auto& key : keys) {
      const auto* value = said_by(run.run, key);
      const bool plain = key == "strategy.name" || key == "scenario";
      name += (name.empty() ? "" : ", ") + (plain ? "" : key + " = ") + (value ? *value : "-");
    }
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const run_group& known) { return known.name == name; });
    auto& group = found != groups.end() ? *found : groups.emplace_back(run_group{.name = name});
    group.runs.push_back(std::move(run));
  }
  return groups;
}

std::vector<report_figure> figures_of(const std::vector<run_group>& groups) {
  return groups.empty() ? std::vector<report_figure>{} : figure_maker(groups).make();
}

} // namespace mneme
