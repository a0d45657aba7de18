#include "tools/study/activity_figures.hpp"
#include "runtime/base/ceil_div.hpp"
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

constexpr std::size_t rows_max = 60;
constexpr std::array<const char*, activity_kinds> doing_names{"downloading", "computing", "uploading", "waiting",
                                                              "late"};
constexpr std::array accuracy_shares{0.25, 0.5, 0.75, 0.9, 1.0}; // target accuracies, as shares of the best accuracy

std::vector<chart_series> doing_series() {
  std::vector<chart_series> series;
  for (std::size_t k = 0; k < activity_kinds; ++k)
    series.push_back({.name = doing_names[k], .look = {.number = k}});
  return series;
}

/// Virtual seconds at which the accuracy was first reached; nullopt if it was not.
std::optional<double> reached_s(const std::vector<evaluation_record>& evaluations, double accuracy) {
  for (const auto& line : evaluations)
    if (line.accuracy >= accuracy)
      return in_seconds(line.at);
  return std::nullopt;
}

} // namespace

std::optional<span_chart> gantt_figure(const run_activity& activity, const std::string& id, const std::string& title) {
  const auto& round = activity.median_round;
  std::set<std::uint32_t> clients;
  for (const auto& span : round.spans)
    clients.insert(span.client);
  if (clients.empty())
    return std::nullopt;
  const auto every = ceil_div<std::size_t>(clients.size(), rows_max);
  span_chart chart{
      .text = {id, title,
               fmt::format("Round {}, the one of median duration: activity of each working client over virtual time.",
                           round.round),
               "virtual time (s)", "client"},
      .kinds = doing_series(),
      .from = round.opened_s,
      .to = round.closed_s};
  if (every > 1)
    chart.text.note = fmt::format("One in {} clients is shown.", every);
  std::map<std::uint32_t, std::size_t> row_of;
  std::size_t place = 0;
  for (const auto client : clients)
    if (place++ % every == 0) {
      row_of[client] = chart.rows.size();
      chart.rows.push_back(std::to_string(client));
    }
  for (const auto& span : round.spans)
    if (const auto row = row_of.find(span.client); row != row_of.end())
      chart.spans.push_back(
          {.row = row->second, .kind = static_cast<std::size_t>(span.activity), .from = span.from_s, .to = span.to_s});
  return chart;
}

std::optional<line_chart> utilization_figure(const run_activity& activity, const std::string& id,
                                             const std::string& title) {
  if (activity.bins.empty())
    return std::nullopt;
  line_chart chart{.text = {id, title, "Number of clients per activity, averaged over intervals of virtual time.",
                            "virtual time (s)", "clients"},
                   .y_min = 0.0};
  const auto series = doing_series();
  for (std::size_t k = 0; k < activity_kinds; ++k) {
    chart_curve curve{.series = series[k]};
    bool is_seen = false;
    for (const auto& bin : activity.bins) {
      curve.points.emplace_back(bin.at_s, bin.clients[k]);
      is_seen = is_seen || bin.clients[k] > 0.0;
    }
    if (is_seen)
      chart.curves.push_back(std::move(curve));
  }
  return chart;
}

std::optional<bar_chart> round_time_chart(const reported_run& run, const std::string& id, const std::string& title) {
  double best = 0.0;
  for (const auto& line : run.evaluations)
    best = std::max(best, line.accuracy);
  const auto* const mode = run_value(run.run, "rounds.mode");
  if ((mode && *mode == "async") || !run.activity || run.activity->rounds.empty() || best <= 0.0)
    return std::nullopt;
  bar_chart chart{.text = {id, title,
                           "Virtual time until an accuracy was first reached, split into download, computation and "
                           "upload of the client that delivered last in each round, and other waiting time.",
                           "accuracy (%)", "virtual time (s)"}};
  const std::pair<const char*, double round_parts::*> parts[] = {{"download", &round_parts::download_s},
                                                                 {"compute", &round_parts::compute_s},
                                                                 {"upload", &round_parts::upload_s},
                                                                 {"waiting", &round_parts::other_s}};
  for (std::size_t k = 0; k < std::size(parts); ++k)
    chart.kinds.push_back({.series = {.name = parts[k].first, .look = {.number = k}}});
  for (const double share : accuracy_shares) {
    const auto until_s = reached_s(run.evaluations, share * best);
    if (!until_s)
      continue;
    chart.categories.push_back(fmt::format("{:.1f}", share * best));
    for (std::size_t k = 0; k < std::size(parts); ++k) {
      double sum = 0.0;
      for (const auto& round : run.activity->rounds)
        if (round.closed_s <= *until_s)
          sum += round.*parts[k].second;
      chart.kinds[k].bars.push_back(chart_bar{sum, sum, sum});
    }
  }
  return chart;
}

} // namespace mneme
