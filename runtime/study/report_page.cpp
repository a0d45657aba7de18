#include "runtime/study/report_page.hpp"
#include "runtime/results/escaped_markup.hpp"
#include "runtime/study/comparison_text.hpp"
#include <fmt/format.h>
#include <fstream>
#include <iterator>
namespace mneme {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --page: #ffffff; --ink: #1a1a1a; --soft: #595959; --line: #cccccc; --box: #f5f5f5;
        --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --page: #161616; --ink: #ececec; --soft: #b0b0b0; --line: #444444; --box: #222222; --link: #8ab8f0; } }
:root[data-theme="light"] { color-scheme: light; --page: #ffffff; --ink: #1a1a1a; --soft: #595959; --line: #cccccc;
  --box: #f5f5f5; --link: #0b5cad; }
:root[data-theme="dark"] { color-scheme: dark; --page: #161616; --ink: #ececec; --soft: #b0b0b0; --line: #444444;
  --box: #222222; --link: #8ab8f0; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main, header { max-width: 1440px; margin: 0 auto; padding: 0 16px; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; } h3 { font-size: 1rem; margin: 0 0 4px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--box); }
figure svg { display: block; width: 100%; height: auto; color: var(--ink); }
@media (max-width: 600px) { figure svg { font-size: 18px; } }
figcaption { color: var(--soft); font-size: 0.85rem; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; border: 0; padding: 0; margin: 8px 0 16px; }
.legend label { display: inline-flex; align-items: center; gap: 6px; min-height: 24px; }
.legend i { width: 22px; height: 4px; border-radius: 2px; display: inline-block; }
pre { overflow-x: auto; background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: 12px;
      font-size: 0.85rem; }
summary { cursor: pointer; min-height: 24px; }
button { font: inherit; color: var(--ink); background: var(--box); border: 1px solid var(--line); border-radius: 6px;
         padding: 4px 10px; }
a { color: var(--link); } :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.warnings { border-left: 4px solid #b7791f; padding-left: 12px; }
)";

constexpr std::string_view script = R"(
const show = (choice) => {
  for (const mark of document.querySelectorAll('g[data-group="' + choice.value + '"]'))
    mark.style.display = choice.checked ? '' : 'none';
};
document.addEventListener('change', (event) => { if (event.target.closest('.legend')) show(event.target); });
document.getElementById('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark' ||
    (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
});
)";

// Pictures and tables alone are replaced where nothing else has changed: what is open, chosen or focused stays so.
constexpr std::string_view live_script = R"(
const events = new EventSource('events' + location.search);
const parts = (main) => [...main.querySelectorAll('figure > svg, .scroll > table')];
const frame = (main) => [...main.querySelectorAll('figure, legend, label, li, summary')]
  .map((part) => part.id || part.textContent).join();
events.onmessage = async () => {
  const answer = await fetch('.' + location.search);
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const now = document.querySelector('main'), next = page.querySelector('main'), fresh = parts(next);
  if (frame(now) === frame(next))
    parts(now).forEach((part, k) => part.replaceWith(fresh[k]));
  else
    now.replaceWith(next);
  document.querySelectorAll('.legend input').forEach(show);
};
events.onerror = () => { document.getElementById('state').textContent = 'no longer served'; events.close(); };
)";

std::string shown(const stored_run& run, const char* figure) {
  const auto found = run.figures.find(figure);
  return found != run.figures.end() && found->second ? fmt::format("{:.2f}", *found->second) : "-";
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string table_row(const std::vector<std::string>& cells, const char* tag) {
  std::string text = "<tr>";
  for (const auto& cell : cells)
    text += fmt::format("<{0}>{1}</{2}>", tag, escaped_markup(cell), std::string_view(tag).substr(0, 2));
  return text + "</tr>\n";
}

std::string runs_table(const std::vector<run_group>& groups) {
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table>\n<thead>" +
      table_row({"group", "seed", "status", "strategy", "dataset", "final accuracy (%)", "average incremental (%)",
                 "forgetting", "virtual time (s)", "workers busy", "run digest", "scenario digest", "folder"},
                "th scope=\"col\"") +
      "</thead><tbody>\n";
  for (const auto& group : groups)
    for (const auto& [run, evaluations, course] : group.runs)
      text += table_row({group.name, std::to_string(run.seed), run.status, run.strategy, run.dataset,
                         shown(run, "final_accuracy"), shown(run, "average_incremental_accuracy"),
                         shown(run, "forgetting"), shown(run, "virtual_seconds"), shown(run, "worker_busy_share"),
                         run.run_digest, run.scenario_digest, run.folder.string()},
                        "td");
  return text + "</tbody></table></div>\n";
}

/// Means over seeds with their intervals, where the runs can be compared.
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
  return "<h2>Comparison</h2>\n<pre tabindex=\"0\">" +
         escaped_markup(comparison_text(*table, comparison_format::text)) + "</pre>\n";
}

std::string legend(const std::vector<run_group>& groups) {
  std::string text = "<fieldset class=\"legend\"><legend>Runs shown; bands are least and most over seeds</legend>\n";
  for (std::size_t g = 0; g < groups.size(); ++g)
    text += fmt::format("<label><input type=\"checkbox\" value=\"{}\" checked><i style=\"background:{}\"></i>{} "
                        "({})</label>\n",
                        g, group_colour(g), escaped_markup(groups[g].name), groups[g].runs.size());
  return text + "</fieldset>\n";
}

std::string configurations(const std::vector<run_group>& groups) {
  std::string text = "<h2>Configuration</h2>\n";
  for (const auto& group : groups) // seeds of a group differ in nothing else
    text +=
        fmt::format("<details><summary>{}: resolved scenario of {}</summary><pre tabindex=\"0\">{}</pre></details>\n",
                    escaped_markup(group.name), escaped_markup(group.runs.front().run.folder.string()),
                    escaped_markup(content_of(group.runs.front().run.folder / "scenario.toml")));
  return text;
}

} // namespace

std::string report_page(const std::vector<run_group>& groups, const std::vector<report_figure>& figures,
                        const std::vector<std::string>& warnings, page_kind kind) {
  auto known = warnings;
  const auto comparison = comparison_part(groups, known);
  std::string body = "<header><h1>mneme: report</h1>\n<button id=\"theme\" type=\"button\">Dark or light</button>\n"
                     "<p id=\"state\" role=\"status\"></p></header>\n<main>\n";
  if (!known.empty()) {
    body += "<section class=\"warnings\" aria-label=\"Warnings\"><h2>Warnings</h2>\n<ul>\n";
    for (const auto& warning : known)
      body += "<li>" + escaped_markup(warning) + "</li>\n";
    body += "</ul></section>\n";
  }
  body += "<h2>Figures</h2>\n" + legend(groups) + "<div class=\"charts\">\n";
  for (const auto& figure : figures)
    body += fmt::format("<figure id=\"{}\"><h3>{}</h3>\n{}<figcaption>{}</figcaption></figure>\n",
                        escaped_markup(figure.text.id), escaped_markup(figure.text.title), figure.in_page,
                        escaped_markup(figure.text.description));
  body += "</div>\n<h2>Runs</h2>\n" + runs_table(groups) + comparison + configurations(groups) + "</main>\n";
  return fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\">\n<title>mneme: report</title>\n"
                     "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n{}<script>{}</script>\n"
                     "</body>\n</html>\n",
                     style, body, std::string(script) + std::string(kind == page_kind::live ? live_script : ""));
}

} // namespace mneme
