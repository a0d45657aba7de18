#include "tools/study/report_page.hpp"
#include "runtime/base/elapsed_text.hpp"
#include "tools/charts/escape_markup.hpp"
#include "tools/study/comparison_text.hpp"
#include "tools/study/report_assets.hpp"
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>
namespace mneme {
namespace {

std::string shown(const stored_run& run, const char* figure) {
  const auto value = run.figures.find(figure);
  return value != run.figures.end() && value->second ? fmt::format("{:.2f}", *value->second) : "-";
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string key_text(const stored_run& run, const std::string& key) {
  const auto* value = run_value(run, key);
  return value ? *value : "";
}

/// Common title of the scenarios, or the number of runs if the titles differ.
std::string title_of(const std::vector<run_group>& groups) {
  std::set<std::string> titles;
  std::size_t runs = 0;
  for (const auto& group : groups)
    for (const auto& run : group.runs) {
      titles.insert(key_text(run.run, "title"));
      ++runs;
    }
  if (groups.size() == 1 && titles.size() == 1 && !titles.begin()->empty())
    return *titles.begin();
  return runs == 0 ? "mneme: report" : fmt::format("mneme: report of {} runs", runs);
}

/// Table cell with the first digits of a digest, which expands to the whole digest.
std::string digest_cell(const std::string& digest) {
  if (digest.empty())
    return "<td>-</td>";
  return fmt::format("<td><details><summary>{}</summary><code>{}</code></details></td>",
                     escape_markup(digest.substr(0, 8)), escape_markup(digest));
}

std::string runs_table(const std::vector<run_group>& groups) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\" data-live><table>\n"
                     "<thead><tr>";
  for (const char* head : {"group", "seed", "status", "strategy", "dataset"})
    text += fmt::format("<th scope=\"col\">{}</th>", head);
  for (const char* head :
       {"final accuracy (%)", "average incremental (%)", "forgetting", "virtual time (s)", "workers busy"})
    text += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", head);
  text += "<th scope=\"col\">run digest</th><th scope=\"col\">scenario digest</th><th scope=\"col\">folder</th></tr>"
          "</thead><tbody>\n";
  for (const auto& group : groups)
    for (const auto& [run, evaluations, course, classes, held, activity] : group.runs) {
      text += "<tr>";
      for (const auto& cell : {group.name, std::to_string(run.seed), run.status, run.strategy, run.dataset})
        text += "<td>" + escape_markup(cell) + "</td>";
      for (const char* figure :
           {"final_accuracy", "average_incremental_accuracy", "forgetting", "virtual_seconds", "worker_busy_share"})
        text += "<td class=\"number\">" + shown(run, figure) + "</td>";
      text += digest_cell(run.run_digest) + digest_cell(run.scenario_digest) + "<td>" +
              escape_markup(run.folder.string()) + "</td></tr>\n";
    }
  return text + "</tbody></table></div>\n";
}

/// Table of means over seeds with intervals. If the runs are not comparable, adds a warning and returns "".
std::string comparison_part(const std::vector<run_group>& groups, std::vector<std::string>& warnings) {
  std::vector<stored_run> done;
  for (const auto& group : groups)
    for (const auto& run : group.runs)
      if (run.run.status == "done")
        done.push_back(run.run);
  if (done.size() < 2)
    return {};
  const auto table = compare_runs(done, {});
  if (!table) {
    for (const auto& problem : table.error())
      warnings.push_back(diagnostic_text(problem));
    return {};
  }
  return "<h2>Comparison</h2>\n" + comparison_text(*table, comparison_format::html);
}

/// Legend that stays visible while scrolling; with several groups it also selects which of them are visible.
std::string legend(const std::vector<run_group>& groups) {
  if (groups.size() < 2)
    return {};
  std::string text = "<fieldset class=\"legend\"><legend>Runs shown</legend>\n";
  for (std::size_t g = 0; g < groups.size(); ++g)
    text += fmt::format("<label><input type=\"checkbox\" value=\"{}\" checked>{}{} ({})</label>\n", g,
                        swatch_svg({.number = g}), escape_markup(groups[g].name), groups[g].runs.size());
  return text + "</fieldset>\n";
}

std::string figure_part(const report_figure& figure) {
  const auto& text = figure.text;
  std::string names;
  for (const auto& series : figure.names)
    names += "<li>" + swatch_svg(series.look) + escape_markup(series.name) + "</li>";
  return fmt::format("<figure id=\"{}\" data-axis=\"{}\"{}><h3>{}</h3>\n<div data-live>{}</div>{}<figcaption>{}{}"
                     "</figcaption></figure>\n",
                     escape_markup(text.id), escape_markup(text.x_label),
                     figure.group ? fmt::format(" data-group=\"{}\"", *figure.group) : "", escape_markup(text.title),
                     figure.in_page, names.empty() ? "" : "<ul class=\"names\">" + names + "</ul>\n",
                     escape_markup(text.description), text.note.empty() ? "" : " " + escape_markup(text.note));
}

std::string figures_part(const std::vector<run_group>& groups, const report_drawing& drawing) {
  std::string text = "<section aria-label=\"Figures\"><h2>Figures</h2>\n" + legend(groups) + "<div class=\"charts\">\n";
  for (const auto& figure : drawing.figures)
    text += figure_part(figure);
  text += "</div>\n<ul data-live>";
  for (const auto& sentence : drawing.constants)
    text += "<li>" + escape_markup(sentence) + "</li>";
  return text + "</ul></section>\n";
}

std::string configurations(const std::vector<run_group>& groups) {
  std::string text = "<h2>Configuration</h2>\n";
  for (const auto& group : groups) // runs of a group differ only in the seed
    text +=
        fmt::format("<details><summary>{}: resolved scenario of {}</summary><pre tabindex=\"0\">{}</pre></details>\n",
                    escape_markup(group.name), escape_markup(group.runs.front().run.folder.string()),
                    escape_markup(content_of(group.runs.front().run.folder / "scenario.toml")));
  return text;
}

/// Formats "3 of 5", or "3" if the total is unknown.
std::string of_total(std::int64_t number, std::int64_t total) {
  return total > 0 ? fmt::format("{} of {}", number, total) : std::to_string(number);
}

std::string progress_part(const run_progress& now) {
  const double share = now.rounds > 0 ? static_cast<double>(now.round) / static_cast<double>(now.rounds) : 0.0;
  auto words = fmt::format("{}: round {}, task {}, {} elapsed", escape_markup(now.status),
                           of_total(now.round, now.rounds), of_total(now.task, now.tasks), elapsed_text(now.elapsed_s));
  if (now.left_s && now.status == "running")
    words += fmt::format(", about {} left", elapsed_text(*now.left_s));
  if (now.accuracy)
    words += fmt::format("; accuracy {:.2f} %", *now.accuracy);
  words += fmt::format("; virtual time {}", elapsed_text(now.virtual_s));
  return fmt::format("<section id=\"progress\" aria-label=\"Progress\" data-live><progress max=\"1\" value=\"{:.4f}\" "
                     "aria-label=\"Rounds done\"></progress><p>{}</p></section>\n",
                     share, words);
}

std::string warnings_part(const std::vector<std::string>& warnings) {
  if (warnings.empty())
    return {};
  std::string text = "<section class=\"warnings\" aria-label=\"Warnings\"><h2>Warnings</h2>\n<ul>\n";
  for (const auto& warning : warnings)
    text += "<li>" + escape_markup(warning) + "</li>\n";
  return text + "</ul></section>\n";
}

} // namespace

std::string report_page(const std::vector<run_group>& groups, const report_drawing& drawing,
                        const std::vector<std::string>& warnings, const std::optional<run_progress>& live) {
  auto known = warnings;
  const auto comparison = comparison_part(groups, known);
  const auto title = escape_markup(title_of(groups));
  const auto tab = live && live->rounds > 0 && live->status == "running"
                       ? fmt::format("{} % {}", 100 * live->round / live->rounds, title)
                       : title;
  const auto body = "<header><h1>" + title +
                    "</h1>\n<button id=\"theme\" type=\"button\">Dark or light</button>\n<p id=\"state\" "
                    "role=\"status\"></p></header>\n<main>\n" +
                    (live ? progress_part(*live) : "") + warnings_part(known) + figures_part(groups, drawing) +
                    comparison + "<h2>Runs</h2>\n" + runs_table(groups) + configurations(groups) + "</main>\n";
  return fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n{}<script>{}</script>\n"
                     "</body>\n</html>\n",
                     tab, report_style, body,
                     std::string(report_script) + std::string(live ? live_script : std::string_view()));
}

} // namespace mneme
