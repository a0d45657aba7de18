#include "tools/study/client_figures.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr std::uint32_t drawn_clients_max = 100;

run_points over_rounds(const reported_run& run, double personal_accuracies::*value) {
  run_points points;
  for (const auto& line : run.evaluations)
    if (line.personal && line.personal->clients > 0)
      points.emplace_back(line.round.value + 1.0, (*line.personal).*value);
  return points;
}

run_points last_deciles(const reported_run& run) {
  run_points points;
  if (run.evaluations.empty() || !run.evaluations.back().personal)
    return points;
  for (const double accuracy : run.evaluations.back().personal->deciles)
    points.emplace_back(10.0 * static_cast<double>(points.size() + 1), accuracy);
  return points;
}

} // namespace

std::vector<line_chart> client_figures(const std::vector<run_group>& groups) {
  const auto mean_chart = [&](chart_text text, double personal_accuracies::*value) {
    return line_chart{.text = std::move(text),
                      .curves = curves_of(groups, [value](const reported_run& run) { return over_rounds(run, value); }),
                      .whole_x = true,
                      .marks = task_marks(groups, [](const auto& line) { return line.round.value + 1.5; }),
                      .y_min = 0.0};
  };
  return {
      mean_chart({"personal-accuracy", "Accuracy of the clients' own models",
                  "Each client's own model on the client's own test rows, in percent, mean over clients.", "round",
                  "accuracy (%)"},
                 &personal_accuracies::mean),
      mean_chart({"personal-before", "Accuracy of the server's model on the clients' rows",
                  "The model before local steps on the same test rows, mean over clients.", "round", "accuracy (%)"},
                 &personal_accuracies::before),
      line_chart{.text = {"personal-deciles", "Accuracy of the clients' own models over clients",
                          "Deciles over clients at the last evaluation: at 10, a tenth of the clients are below.",
                          "clients (%)", "accuracy (%)"},
                 .curves = curves_of(groups, last_deciles),
                 .y_min = 0.0}};
}

std::optional<heat_map> held_classes_map(const std::vector<reported_run>& runs, const std::string& id,
                                         const std::string& suffix) {
  const auto run = std::find_if(runs.begin(), runs.end(), [](const reported_run& each) { return !each.held.empty(); });
  if (run == runs.end())
    return std::nullopt;
  std::map<std::int64_t, std::string> names;                           // by label
  std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> rows; // number of rows by client and label
  std::uint32_t clients = 0;
  for (const auto& line : run->held) {
    names[line.label] = line.name;
    clients = std::max(clients, line.client + 1);
    rows[{line.client, line.label}] += line.rows;
  }
  const auto drawn = std::min(clients, drawn_clients_max);
  heat_map map{.text = {id, "Rows of each class that clients hold" + suffix,
                        "Row k, column c: training rows of class c that client k holds in all tasks." +
                            (drawn < clients ? fmt::format(" The first {} of {} clients.", drawn, clients) : ""),
                        "class", "client"},
               .high = 1.0};
  for (const auto& [label, name] : names) {
    map.columns.push_back(std::to_string(label));
    map.column_words.push_back(name.empty() ? map.columns.back() : fmt::format("{} ({})", label, name));
  }
  for (std::uint32_t client = 0; client < drawn; ++client) {
    map.rows.push_back(std::to_string(client));
    auto& cells = map.values.emplace_back();
    for (const auto& [label, name] : names) {
      const auto held = rows.find({client, label});
      cells.push_back(held == rows.end() ? 0.0 : static_cast<double>(held->second));
      map.high = std::max(map.high, *cells.back());
    }
  }
  return map;
}

} // namespace mneme
