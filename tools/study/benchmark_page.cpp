#include "tools/study/benchmark_page.hpp"
#include "tools/charts/escape_markup.hpp"
#include "tools/study/report_assets.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <set>
namespace mneme {
namespace {

constexpr const char* ranked_figure = "final_accuracy";

/// A column of the tables: a figure in the unit of its heading.
struct column {
  const char *heading, *figure;
  double unit;
  int decimals;
};
constexpr column columns[] = {{"final accuracy, %", "final_accuracy", 1.0, 1},
                              {"average incremental accuracy, %", "average_incremental_accuracy", 1.0, 1},
                              {"forgetting, points", "forgetting", 1.0, 1},
                              {"upload, MB", "upload_bytes", 1e6, 1},
                              {"download, MB", "download_bytes", 1e6, 1},
                              {"virtual hours", "virtual_seconds", 3600.0, 1},
                              {"CPU s", "cpu_seconds", 1.0, 0}};

std::optional<double> accuracy_of(const benchmark_line& line, std::int64_t seed) {
  for (const auto& row : line.rows)
    if (row.seed == seed)
      if (const auto found = row.figures.find(ranked_figure); found != row.figures.end())
        return found->second;
  return std::nullopt;
}

/// Ranks of the lines, for each seed that all lines have.
std::map<std::int64_t, std::vector<double>> ranks_by_seed(const std::vector<const benchmark_line*>& lines) {
  std::set<std::int64_t> seeds;
  for (const auto* line : lines)
    for (const auto& row : line->rows)
      seeds.insert(row.seed);
  std::map<std::int64_t, std::vector<double>> ranks;
  for (const auto seed : seeds) {
    std::vector<double> values;
    for (const auto* line : lines)
      if (const auto accuracy = accuracy_of(*line, seed))
        values.push_back(*accuracy);
    if (values.size() == lines.size())
      ranks[seed] = ranks_of(values, false);
  }
  return ranks;
}

void rank_lines(benchmark_track& track) {
  std::vector<const benchmark_line*> lines;
  for (const auto& line : track.lines)
    lines.push_back(&line);
  const auto ranks = ranks_by_seed(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<double> sample;
    for (const auto& [seed, of_seed] : ranks)
      sample.push_back(of_seed[i]);
    track.lines[i].rank = statistics_of(sample);
  }
}

const benchmark_line* line_of(const benchmark_track& track, const std::string& method) {
  for (const auto& line : track.lines)
    if (line.method == method)
      return &line;
  return nullptr;
}

benchmark_ranking ranking_of(const std::vector<benchmark_track>& tracks) {
  std::vector<std::string> methods;
  for (const auto& line : tracks.empty() ? std::vector<benchmark_line>{} : tracks.front().lines)
    if (std::all_of(tracks.begin(), tracks.end(), [&](const auto& track) { return line_of(track, line.method); }))
      methods.push_back(line.method);
  benchmark_ranking made;
  std::vector<std::vector<double>> samples(methods.size());
  for (const auto& track : tracks) {
    std::vector<const benchmark_line*> lines;
    for (const auto& method : methods)
      lines.push_back(line_of(track, method));
    for (const auto& [seed, ranks] : ranks_by_seed(lines)) {
      ++made.rankings;
      for (std::size_t i = 0; i < methods.size(); ++i)
        samples[i].push_back(ranks[i]);
    }
  }
  for (std::size_t i = 0; i < methods.size() && made.rankings > 0; ++i)
    made.methods.emplace_back(methods[i], statistics_of(samples[i]));
  std::stable_sort(made.methods.begin(), made.methods.end(),
                   [](const auto& a, const auto& b) { return *a.second.mean < *b.second.mean; });
  const auto k = static_cast<double>(made.methods.size());
  if (made.methods.size() > 1 && made.rankings > 1)
    made.critical_difference = nemenyi_critical_value(made.methods.size()) *
                               std::sqrt(k * (k + 1.0) / (6.0 * static_cast<double>(made.rankings)));
  return made;
}

/// "71.2 ± 0.8", "71.2", or "-" without a value.
std::string text_of(const sample_statistics& sample, double unit, int decimals) {
  if (!sample.mean)
    return "-";
  auto text = fmt::format("{:.{}f}", *sample.mean / unit, decimals);
  return sample.half_width ? text + fmt::format(" ± {:.{}f}", *sample.half_width / unit, decimals) : text;
}

std::vector<std::string> headings() {
  std::vector<std::string> names{"method"};
  for (const auto& one : columns)
    names.emplace_back(one.heading);
  names.insert(names.end(), {"mean rank", "seeds and run digests"});
  return names;
}

std::vector<std::string> cells_of(const benchmark_line& line) {
  std::vector<std::string> cells{line.method};
  for (const auto& one : columns) {
    const auto found = line.figures.find(one.figure);
    cells.push_back(text_of(found == line.figures.end() ? sample_statistics{} : found->second, one.unit, one.decimals));
  }
  cells.push_back(text_of(line.rank, 1.0, 1));
  std::string digests;
  for (const auto& row : line.rows)
    digests += fmt::format("{}{}: {}", digests.empty() ? "" : ", ", row.seed, row.run_digest.substr(0, 8));
  cells.push_back(digests);
  return cells;
}

std::string ranking_note(const benchmark_ranking& ranking) {
  if (ranking.critical_difference <= 0.0)
    return "The ranking needs at least two methods that all tracks have, and two pairs of a track and a seed.";
  return fmt::format("Mean ranks of the final accuracy over {} pairs of a track and a seed. Mean ranks that differ by "
                     "less than {:.2f} do not differ significantly at 5 % (Nemenyi's test, Demšar 2006).",
                     ranking.rankings, ranking.critical_difference);
}

constexpr const char* introduction =
    "Each row is checked by one command, which repeats the run and compares its digest: "
    "`mneme benchmark check TRACK/METHOD/SEED`. Intervals are 95 % (Student's t) over seeds.";

constexpr const char* sort_script = R"(
for (const head of document.querySelectorAll('th button'))
  head.onclick = () => {
    const cell = head.parentElement, body = cell.closest('table').tBodies[0];
    const up = cell.getAttribute('aria-sort') !== 'ascending', at = cell.cellIndex;
    for (const other of cell.parentElement.cells) other.removeAttribute('aria-sort');
    cell.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const value = row => { const text = row.cells[at].textContent, n = parseFloat(text); return isNaN(n) ? text : n; };
    [...body.rows].sort((a, b) => (value(a) > value(b) ? 1 : value(a) < value(b) ? -1 : 0) * (up ? 1 : -1))
      .forEach(row => body.append(row));
  };
)";

} // namespace

double nemenyi_critical_value(std::size_t methods) {
  const auto below = [](double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }; // distribution function of the
                                                                                         // normal distribution
  const auto probability = [&](double range) { // probability that the range of `methods` standard normal values is
                                               // smaller
    constexpr double step = 0.01;
    double sum = 0.0;
    for (double z = -8.0; z < 8.0; z += step)
      sum += std::exp(-0.5 * z * z) * std::pow(below(z) - below(z - range), static_cast<double>(methods) - 1.0);
    return static_cast<double>(methods) * sum * step / std::sqrt(2.0 * std::numbers::pi);
  };
  double low = 0.0, high = 16.0;
  while (high - low > 1e-6) {
    const double middle = 0.5 * (low + high);
    (probability(middle) < 0.95 ? low : high) = middle;
  }
  return low / std::numbers::sqrt2;
}

benchmark_table benchmark_tables(const std::vector<benchmark_row>& rows) {
  benchmark_table table;
  for (const auto& row : rows) {
    if (table.tracks.empty() || table.tracks.back().name != row.track)
      table.tracks.push_back({.name = row.track});
    auto& lines = table.tracks.back().lines;
    if (lines.empty() || lines.back().method != row.method)
      lines.push_back({.method = row.method});
    lines.back().rows.push_back(row);
  }
  for (auto& track : table.tracks) {
    for (auto& line : track.lines)
      for (const auto& name : benchmark_figures()) {
        std::vector<double> sample;
        for (const auto& row : line.rows)
          if (const auto found = row.figures.find(name); found != row.figures.end())
            sample.push_back(found->second);
        line.figures[name] = statistics_of(sample);
      }
    rank_lines(track);
    std::stable_sort(track.lines.begin(), track.lines.end(), [](const benchmark_line& a, const benchmark_line& b) {
      return a.figures.at(ranked_figure).mean.value_or(-1.0) > b.figures.at(ranked_figure).mean.value_or(-1.0);
    });
  }
  table.ranking = ranking_of(table.tracks);
  return table;
}

std::string benchmark_markdown(const benchmark_table& table) {
  const auto line_text = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const auto& cell : cells)
      text += " " + cell + " |";
    return text + "\n";
  };
  std::string page = fmt::format("# Benchmark\n\n<!-- Written by mneme benchmark page. -->\n{}\n\n## Ranking\n\n{}\n\n",
                                 introduction, ranking_note(table.ranking));
  if (!table.ranking.methods.empty()) {
    page += line_text({"method", "mean rank"}) + line_text({"---", "---"});
    for (const auto& [method, rank] : table.ranking.methods)
      page += line_text({method, text_of(rank, 1.0, 2)});
  }
  for (const auto& track : table.tracks) {
    page += fmt::format("\n## Track `{}`\n\n", track.name);
    page += line_text(headings()) + line_text(std::vector<std::string>(headings().size(), "---"));
    for (const auto& line : track.lines)
      page += line_text(cells_of(line));
  }
  return page;
}

std::string benchmark_html(const benchmark_table& table) {
  std::string page =
      fmt::format("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                  "<title>mneme: benchmark</title><style>{}</style></head><body><header><h1>Benchmark</h1>"
                  "<p>{}</p></header><main><h2>Ranking</h2><p>{}</p>",
                  report_style, escape_markup(introduction), escape_markup(ranking_note(table.ranking)));
  const auto table_text = [&](const std::vector<std::string>& names,
                              const std::vector<std::vector<std::string>>& rows) {
    page += "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
    for (const auto& name : names)
      page += fmt::format("<th><button>{}</button></th>", escape_markup(name));
    page += "</tr></thead><tbody>";
    for (const auto& row : rows) {
      page += "<tr>";
      for (const auto& cell : row)
        page += fmt::format("<td>{}</td>", escape_markup(cell));
      page += "</tr>";
    }
    page += "</tbody></table></div>";
  };
  std::vector<std::vector<std::string>> rows;
  for (const auto& [method, rank] : table.ranking.methods)
    rows.push_back({method, text_of(rank, 1.0, 2)});
  if (!rows.empty())
    table_text({"method", "mean rank"}, rows);
  for (const auto& track : table.tracks) {
    page += fmt::format("<h2>Track {}</h2>", escape_markup(track.name));
    rows.clear();
    for (const auto& line : track.lines)
      rows.push_back(cells_of(line));
    table_text(headings(), rows);
  }
  return page + fmt::format("</main><script>{}</script></body></html>\n", sort_script);
}

} // namespace mneme
