#include "tools/study/report_figures.hpp"
#include "tools/study/accuracy_plot.hpp"
#include "tools/study/activity_figures.hpp"
#include "tools/study/client_figures.hpp"
#include <cmath>
#include <fmt/format.h>
#include <map>
namespace mneme {
namespace {

constexpr std::size_t single_groups_max = 12; // limit; with more groups there are no charts per group

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
double bin_round(const timeline_bin& bin) { return bin.last.value + 1.0; }
double bin_seconds(const timeline_bin& bin) { return in_seconds(bin.at); }

/// Forgetting of each task except the last: best accuracy after an earlier task minus final accuracy, in percent.
run_points forgetting_of(const reported_run& run) {
  std::vector<std::vector<double>> rows; // accuracy matrix
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
}

/// Value of a curve that varies by less than 0.1 %; nullopt for other curves.
std::optional<double> constant_of(const chart_curve& curve) {
  const double value = curve.points.front().second;
  const auto same = [&](double other) { return std::abs(other - value) <= 1e-3 * std::abs(value); };
  for (const auto& point : curve.points)
    if (!same(point.second))
      return std::nullopt;
  for (const auto& [x, low, high] : curve.band)
    if (!same(low) || !same(high))
      return std::nullopt;
  return value;
}

class figure_maker {
public:
  explicit figure_maker(const std::vector<run_group>& groups) : groups_(groups) {
    for (const auto& group : groups)
      seeds_max_ = std::max(seeds_max_, group.runs.size());
  }

  report_drawing make() {
    accuracy();
    personal_accuracy();
    forgetting();
    training_loss();
    epsilon();
    perplexity();
    for (std::size_t g = 0; g < std::min(groups_.size(), single_groups_max); ++g) {
      task_accuracy(g);
      matrix(g);
      classes(g);
      held_classes(g);
      loss_terms(g);
    }
    enrolment();
    traffic();
    staleness();
    arrivals();
    for (std::size_t g = 0; g < std::min(groups_.size(), single_groups_max); ++g)
      activity(g);
    return std::move(drawing_);
  }

private:
  [[nodiscard]] std::string note() const {
    return seeds_max_ > 1 ? "Lines are means over seeds; bands span the minimum to the maximum." : "";
  }

  template <class Chart>
  void add(Chart chart, std::vector<chart_series> names = {}, std::optional<std::size_t> group = {}) {
    drawing_.figures.push_back({.text = chart.text,
                                .names = std::move(names),
                                .group = group,
                                .in_page = svg_of(chart, image_place::page),
                                .alone = svg_of(chart, image_place::file)});
  }

  /// Adds the curve of an optional value of evaluations over rounds. Runs without it have no points.
  void add_optional(chart_text text, std::optional<double> evaluation_record::*value) {
    add_curves({.text = std::move(text),
                .curves = curves_of(groups_,
                                    [value](const reported_run& run) {
                                      run_points points;
                                      for (const auto& line : run.evaluations)
                                        if (line.*value)
                                          points.emplace_back(round_of(line), *(line.*value));
                                      return points;
                                    }),
                .whole_x = true});
  }

  void add_curves(line_chart chart) {
    if (chart.curves.empty())
      return;
    chart.text.note = note();
    add(std::move(chart));
  }

  /// Adds the chart. If all its curves are constant, adds a sentence instead.
  void add_unless_constant(line_chart chart) {
    std::vector<std::optional<double>> values;
    for (const auto& curve : chart.curves)
      values.push_back(constant_of(curve));
    if (values.empty() || std::find(values.begin(), values.end(), std::nullopt) != values.end())
      return add_curves(std::move(chart));
    auto sentence = chart.text.title + ": ";
    const bool equal = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
    for (std::size_t k = 0; k < (equal ? 1 : values.size()); ++k)
      sentence += fmt::format("{}{:.4g} {}{}", k > 0 ? ", " : "", *values[k], chart.text.y_label,
                              equal ? "" : " (" + chart.curves[k].series.name + ")");
    drawing_.constants.push_back(sentence + " at all times.");
  }

  void accuracy() {
    const auto value = [](const evaluation_record& line) { return line.accuracy; };
    add_curves({.text = {"accuracy-rounds", "Accuracy over rounds",
                         "Accuracy on the test rows of all tasks seen, in percent, after each evaluated round. "
                         "Vertical lines mark the ends of tasks.",
                         "round", "accuracy (%)"},
                .curves = curves_of(groups_, [&](const auto& run) { return evaluated(run, round_of, value); }),
                .whole_x = true,
                .marks = task_marks(groups_, [](const auto& line) { return round_of(line) + 0.5; }),
                .y_min = 0.0});
    add_curves({.text = {"accuracy-time", "Accuracy over virtual time",
                         "The same accuracies over the simulated time at which they were reached; if runs differ, each "
                         "has its own lines at the ends of tasks.",
                         "virtual time (s)", "accuracy (%)"},
                .curves = curves_of(groups_, [&](const auto& run) { return evaluated(run, seconds_of, value); }),
                .marks = task_marks(groups_, seconds_of),
                .y_min = 0.0});
  }

  void personal_accuracy() {
    for (auto& chart : client_figures(groups_))
      add_curves(std::move(chart));
  }

  void task_accuracy(std::size_t g) {
    // Chart of one run, or mean curves of several runs.
    std::optional<line_chart> chart;
    std::vector<std::vector<run_points>> points; // [curve][run]
    for (const auto& run : groups_[g].runs) {
      const chart_text text{fmt::format("accuracy-tasks-{}", g + 1), "Accuracy on each task" + suffix(g),
                            "Accuracy on the test rows of each task, and of all seen, after each evaluated round.",
                            "round", "accuracy (%)"};
      auto drawn = task_accuracy_chart(text, run.evaluations);
      points.resize(std::max(points.size(), drawn.curves.size()));
      for (std::size_t k = 0; k < drawn.curves.size(); ++k)
        points[k].push_back(drawn.curves[k].points);
      if (!chart || drawn.curves.size() > chart->curves.size())
        chart = std::move(drawn);
    }
    if (!chart || chart->curves.size() < 2)
      return;
    std::vector<chart_series> names;
    for (std::size_t k = 0; k < points.size(); ++k) {
      names.push_back(chart->curves[k].series);
      chart->curves[k] = average_curve(names.back(), points[k]);
    }
    chart->text.note = note();
    add(std::move(*chart), std::move(names), g);
  }

  [[nodiscard]] std::string over_seeds(std::size_t g) const {
    return groups_[g].runs.size() > 1 ? ", mean over seeds." : ".";
  }

  /// Returns ": fedavg" if there are several groups, else "".
  [[nodiscard]] std::string suffix(std::size_t g) const { return groups_.size() > 1 ? ": " + groups_[g].name : ""; }

  /// Heat map with a row per task: the mean, over the runs of group `g`, of the values at the end of the task.
  /// @param row returns the values of an evaluation by column
  template <class Row>
  std::optional<heat_map> task_end_map(std::size_t g, Row row) const {
    heat_map map;
    std::vector<std::vector<std::pair<double, double>>> sums; // sum and count per cell
    for (const auto& run : groups_[g].runs)
      for (const auto& line : run.evaluations) {
        if (!line.end_of_task)
          continue;
        sums.resize(std::max<std::size_t>(sums.size(), line.task.value + std::size_t{1}));
        auto& into = sums[line.task.value];
        const std::vector<std::optional<double>> values = row(line);
        into.resize(std::max(into.size(), values.size()));
        for (std::size_t s = 0; s < values.size(); ++s)
          if (values[s]) {
            into[s].first += *values[s];
            into[s].second += 1.0;
          }
      }
    std::size_t columns = 0;
    for (std::size_t t = 0; t < sums.size(); ++t) {
      columns = std::max(columns, sums[t].size());
      map.rows.push_back(std::to_string(t + 1));
      map.values.emplace_back();
      for (const auto& [sum, count] : sums[t])
        map.values.back().push_back(count > 0.0 ? std::optional(sum / count) : std::nullopt);
    }
    for (std::size_t c = 0; c < columns; ++c)
      map.columns.push_back(std::to_string(c + 1));
    return columns > 0 ? std::optional(std::move(map)) : std::nullopt;
  }

  void matrix(std::size_t g) {
    auto map = task_end_map(g, [](const evaluation_record& line) {
      return std::vector<std::optional<double>>(line.accuracy_per_task.begin(), line.accuracy_per_task.end());
    });
    if (!map)
      return;
    map->text = {fmt::format("matrix-{}", g + 1), "Accuracy matrix" + suffix(g),
                 "Row t, column s: accuracy in percent on task s just after task t" + over_seeds(g), "task",
                 "after task"};
    add(std::move(*map), {}, g);
  }

  /// Final accuracy by class in percent: the mean over the runs of group `g`.
  void classes(std::size_t g) {
    std::map<std::int64_t, std::string> names;                                        // by label
    std::map<std::pair<std::uint32_t, std::int64_t>, std::pair<double, double>> sums; // by task and label: sum and
                                                                                      // count
    std::uint32_t tasks = 0;
    for (const auto& run : groups_[g].runs)
      for (const auto& line : run.classes) {
        names[line.label] = line.name;
        auto& [sum, count] = sums[{line.task.value, line.label}];
        sum += line.accuracy;
        count += 1.0;
        tasks = std::max(tasks, line.task.value + 1);
      }
    heat_map map{
        .text = {fmt::format("classes-{}", g + 1), "Accuracy on each class" + suffix(g),
                 "Row t, column c: accuracy in percent on the test rows of class c just after task t" + over_seeds(g),
                 "class", "after task"}};
    for (const auto& [label, name] : names) {
      map.columns.push_back(std::to_string(label));
      map.column_words.push_back(name.empty() ? map.columns.back() : fmt::format("{} ({})", label, name));
    }
    for (std::uint32_t task = 0; task < tasks; ++task) {
      map.rows.push_back(std::to_string(task + 1));
      auto& row = map.values.emplace_back();
      for (const auto& [label, name] : names) {
        const auto sum = sums.find({task, label});
        row.push_back(sum == sums.end() ? std::nullopt : std::optional(sum->second.first / sum->second.second));
      }
    }
    if (tasks > 0)
      add(std::move(map), {}, g);
  }

  void held_classes(std::size_t g) {
    if (auto map = held_classes_map(groups_[g].runs, fmt::format("client-classes-{}", g + 1), suffix(g)))
      add(std::move(*map), {}, g);
  }

  void training_loss() {
    add_curves({.text = {"training-loss", "Training loss",
                         "The clients' own loss in the round, mean over the rows of all trainings whose uploads have "
                         "arrived.",
                         "round", "loss"},
                .curves = curves_of(groups_,
                                    [](const reported_run& run) {
                                      run_points points;
                                      for (const auto& line : run.evaluations)
                                        if (line.training_loss)
                                          points.emplace_back(round_of(line), *line.training_loss);
                                      return points;
                                    }),
                .whole_x = true,
                .marks = task_marks(groups_, [](const auto& line) { return round_of(line) + 0.5; })});
  }

  /// Only runs with uploads.noise_multiplier have points.
  void epsilon() {
    add_optional({"epsilon", "Privacy spent",
                  "Epsilon of differential privacy of one client, at the run's uploads.delta.", "round", "epsilon"},
                 &evaluation_record::epsilon);
  }

  /// Only runs of language models have points.
  void perplexity() {
    add_optional({"perplexity", "Perplexity", "exp(mean loss per token) on the test rows of all tasks seen.", "round",
                  "perplexity"},
                 &evaluation_record::perplexity);
  }

  /// Makes one chart per loss term. A loss with a single term is in the chart of the training loss.
  void loss_terms(std::size_t g) {
    std::map<std::string, std::vector<run_points>> points; // by term and run
    for (std::size_t r = 0; r < groups_[g].runs.size(); ++r)
      for (const auto& line : groups_[g].runs[r].evaluations)
        for (const auto& [term, loss] : line.training_loss_terms) {
          points[term].resize(groups_[g].runs.size());
          points[term][r].emplace_back(round_of(line), loss);
        }
    if (points.size() < 2)
      return;
    line_chart chart{.text = {fmt::format("loss-terms-{}", g + 1), "Terms of the training loss" + suffix(g),
                              "Terms of the clients' loss, each multiplied by its factor.", "round", "loss", note()},
                     .whole_x = true,
                     .marks = task_marks({groups_[g]}, [](const auto& line) { return round_of(line) + 0.5; })};
    std::vector<chart_series> names;
    for (const auto& [term, runs] : points) {
      names.push_back({.name = term, .look = {.number = names.size()}});
      chart.curves.push_back(average_curve(names.back(), runs));
    }
    for (auto& mark : chart.marks)
      mark = {.x = mark.x};
    add(std::move(chart), std::move(names), g);
  }

  void forgetting() {
    bar_chart chart{
        .text = {"forgetting", "Forgetting of each task",
                 "Drop of the accuracy on a task from its best after any earlier task to the end, in points.", "task",
                 "forgetting (points)",
                 seeds_max_ > 1 ? "Bars are means over seeds; whiskers span the minimum to the maximum." : ""}};
    std::vector<std::vector<run_points>> points(groups_.size());
    std::size_t tasks = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const auto& run : groups_[g].runs) {
        points[g].push_back(forgetting_of(run));
        for (const auto& [task, forgotten] : points[g].back())
          tasks = std::max(tasks, static_cast<std::size_t>(task));
      }
    for (std::size_t task = 0; task < tasks; ++task)
      chart.categories.push_back(std::to_string(task + 1));
    for (std::size_t g = 0; g < groups_.size(); ++g)
      chart.kinds.push_back(average_bars(series_of(groups_, g), points[g], tasks));
    if (tasks > 0)
      add(std::move(chart));
  }

  void enrolment() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      return run.course.empty()
                 ? evaluated(run, seconds_of, [](const auto& line) { return double(line.clients_enrolled); })
                 : over_course(run, bin_seconds, [](const auto& bin) { return double(bin.clients_enrolled); });
    });
    for (auto& curve : curves)
      curve.stepped = curve.band.empty();
    add_unless_constant(
        {.text = {"enrolment", "Clients enrolled", "Number of enrolled clients.", "virtual time (s)", "clients"},
         .curves = std::move(curves),
         .marks = task_marks(groups_, seconds_of),
         .y_min = 0.0});
  }

  /// Chart of traffic. @param of_line returns the bytes of an evaluation @param of_bin returns the bytes of a bin
  template <class OfLine, class OfBin>
  void traffic_to(const chart_text& text, OfLine of_line, OfBin of_bin) {
    constexpr double mebibyte = 1024.0 * 1024.0;
    add_unless_constant({.text = text,
                         .curves = curves_of(groups_,
                                             [&](const reported_run& run) {
                                               return run.course.empty()
                                                          ? evaluated(run, round_of,
                                                                      [&](const auto& line) {
                                                                        return double(line.*of_line) / mebibyte;
                                                                      })
                                                          : over_course(run, bin_round, [&](const auto& bin) {
                                                              return double(bin.*of_bin) / mebibyte;
                                                            });
                                             }),
                         .whole_x = true,
                         .y_min = 0.0});
  }

  void traffic() {
    traffic_to({"uploads", "Uploads", "Cumulative uploads of clients.", "round", "MiB"},
               &evaluation_record::upload_bytes, &timeline_bin::upload_bytes);
    traffic_to({"downloads", "Downloads", "Cumulative downloads of clients.", "round", "MiB"},
               &evaluation_record::download_bytes, &timeline_bin::download_bytes);
  }

  void staleness() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      run_points points;
      const bool asynchronous = run.run.keys.contains("rounds.mode") && run.run.keys.at("rounds.mode") == "async";
      for (const auto& bin : run.course)
        if (asynchronous && bin.client_rounds > 0)
          points.emplace_back(bin_round(bin),
                              static_cast<double>(bin.staleness_sum) / static_cast<double>(bin.client_rounds));
      return points;
    });
    add_unless_constant(
        {.text = {"staleness", "Staleness",
                  "Server steps between an upload's start and its arrival, mean over all uploads so far.",
                  "server step", "server steps"},
         .curves = std::move(curves),
         .whole_x = true,
         .y_min = 0.0});
  }

  /// Uploads per virtual second, from differences between consecutive bins.
  void arrivals() {
    auto curves = curves_of(groups_, [](const reported_run& run) {
      run_points points;
      double before_s = 0.0, before = 0.0;
      for (const auto& bin : run.course) {
        const double now_s = bin_seconds(bin), now = static_cast<double>(bin.client_rounds);
        if (now_s > before_s)
          points.emplace_back(now_s, (now - before) / (now_s - before_s));
        before_s = now_s;
        before = now;
      }
      return points;
    });
    add_unless_constant(
        {.text = {"utilization", "Utilization of the federation", "Uploads that arrive per second of virtual time.",
                  "virtual time (s)", "uploads per second"},
         .curves = std::move(curves),
         .y_min = 0.0});
  }

  /// Activity charts of the group's first run that has a trace.
  void activity(std::size_t g) {
    const auto& runs = groups_[g].runs;
    const auto run = std::find_if(runs.begin(), runs.end(), [](const reported_run& each) { return each.activity; });
    if (run == runs.end())
      return;
    const auto number = std::to_string(g + 1), of_group = suffix(g);
    if (auto chart = gantt_figure(*run->activity, "gantt-" + number, "Clients in a round" + of_group)) {
      auto names = chart->kinds;
      add(std::move(*chart), std::move(names), g);
    }
    if (auto chart =
            utilization_figure(*run->activity, "clients-time-" + number, "Clients over virtual time" + of_group)) {
      std::vector<chart_series> names;
      for (const auto& curve : chart->curves)
        names.push_back(curve.series);
      add(std::move(*chart), std::move(names), g);
    }
    if (auto chart = round_time_chart(*run, "time-parts-" + number, "Time to accuracy and its parts" + of_group)) {
      std::vector<chart_series> names;
      for (const auto& kind : chart->kinds)
        names.push_back(kind.series);
      add(std::move(*chart), std::move(names), g);
    }
  }

  const std::vector<run_group>& groups_;
  std::size_t seeds_max_ = 0;
  report_drawing drawing_;
};

} // namespace

report_drawing figures_of(const std::vector<run_group>& groups) {
  return groups.empty() ? report_drawing{} : figure_maker(groups).make();
}

} // namespace mneme
