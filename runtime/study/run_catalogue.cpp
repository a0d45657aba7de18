#include "runtime/study/run_catalogue.hpp"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t format_version = 1;
// What a fact says: an attribute of the run, a key of its scenario, a figure of its summary.
constexpr std::int64_t attribute = 0, scenario_key = 1, figure = 2;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, folder TEXT UNIQUE NOT NULL, stamp TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS facts (run INTEGER NOT NULL REFERENCES runs(id), kind INTEGER NOT NULL, name TEXT NOT NULL,
                                  text TEXT, number REAL);
CREATE INDEX IF NOT EXISTS facts_by_name ON facts (name, number, text);
CREATE INDEX IF NOT EXISTS facts_by_run ON facts (run);
)";

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

/// Changes whenever the run's files do: their sizes and times of change.
std::string stamp_of(const fs::path& folder) {
  std::string stamp;
  for (const char* name : {"scenario.toml", "summary.json", "checkpoint/run.json"}) {
    std::error_code none;
    const auto bytes = fs::file_size(folder / name, none);
    const auto changed = none ? 0 : fs::last_write_time(folder / name, none).time_since_epoch().count();
    stamp += none ? "-;" : fmt::format("{}:{};", bytes, changed);
  }
  return stamp;
}

/// The attributes by name, for writing and for reading.
std::vector<std::pair<const char*, std::string stored_run::*>> attributes() {
  return {{"status", &stored_run::status},
          {"version", &stored_run::version},
          {"scenario", &stored_run::scenario},
          {"scenario_digest", &stored_run::scenario_digest},
          {"run_digest", &stored_run::run_digest},
          {"strategy", &stored_run::strategy},
          {"dataset", &stored_run::dataset},
          {"device", &stored_run::device},
          {"error", &stored_run::error}};
}

bool is_current(const database& held) {
  database_statement version(held, "PRAGMA user_version");
  return version.next() && version.integer(0) == format_version;
}

} // namespace

expected<run_filter> parsed_filter(const std::string& text) {
  const auto at = text.find_first_of("=!<>");
  run_filter made{.name = text.substr(0, std::min(at, text.size()))};
  if (at != std::string::npos) {
    const bool two = at + 1 < text.size() && text[at + 1] == '=' && text[at] != '=';
    made.comparison = text.substr(at, two ? 2 : 1);
    made.value = text.substr(at + made.comparison.size());
  }
  if (made.name.empty() || made.value.empty() || made.comparison == "!")
    return failed("", "--where '" + text +
                          "': expected a name, one of = != < <= > >=, and a value, as in --where "
                          "rounds.cohort=5 or --where 'final_accuracy>=70'");
  return made;
}

run_catalogue::run_catalogue(fs::path folder) : folder_(std::move(folder)) {
  open();
  refresh();
}

void run_catalogue::open() {
  const auto file = folder_ / file_name;
  for (const bool again : {false, true}) {
    std::error_code ignored;
    if (again)
      fs::remove(file, ignored);
    try {
      database_ = std::make_unique<database>(file);
      const bool old = fs::file_size(file, ignored) > 0 && !ignored && !is_current(*database_);
      if (!old || again) {
        database_->run(schema);
        database_->run(fmt::format("PRAGMA user_version = {}", format_version));
        return;
      }
    } catch (const std::runtime_error&) {
      // a damaged file is made again below
    }
    database_.reset();
  }
  database_ = std::make_unique<database>(":memory:");
  database_->run(schema);
}

void run_catalogue::refresh() {
  std::map<std::string, std::string> gone; // stamp by folder
  for (database_statement rows(*database_, "SELECT folder, stamp FROM runs"); rows.next();)
    gone[rows.text(0)] = rows.text(1);
  std::vector<std::pair<fs::path, std::string>> changed;
  for (const auto& path : run_folders_in(folder_)) {
    auto stamp = stamp_of(path);
    const auto found = gone.find(path.lexically_relative(folder_).string());
    const bool equal = found != gone.end() && found->second == stamp;
    if (found != gone.end())
      gone.erase(found);
    if (!equal)
      changed.emplace_back(path, std::move(stamp));
  }
  if (changed.empty() && gone.empty())
    return;
  database_->run("BEGIN IMMEDIATE");
  for (const auto& [name, stamp] : gone)
    forget(name);
  for (const auto& [path, stamp] : changed) {
    forget(path.lexically_relative(folder_).string());
    add(path, stamp);
  }
  database_->run("COMMIT");
}

void run_catalogue::forget(const std::string& name) {
  database_statement facts(*database_, "DELETE FROM facts WHERE run = (SELECT id FROM runs WHERE folder = ?1)");
  facts.bind(1, name).run();
  database_statement runs(*database_, "DELETE FROM runs WHERE folder = ?1");
  runs.bind(1, name).run();
}

void run_catalogue::add(const fs::path& folder, const std::string& stamp) {
  auto read = read_stored_run(folder);
  if (!read) {
    const auto& found = read.error().front();
    const auto within = folder.string() + "/";
    const auto where = found.where.starts_with(within) ? found.where.substr(within.size()) : found.where;
    read = stored_run{.folder = folder, .status = "damaged", .error = where + ": " + found.text};
  }
  database_statement row(*database_, "INSERT INTO runs (folder, stamp) VALUES (?1, ?2)");
  row.bind(1, folder.lexically_relative(folder_).string()).bind(2, stamp).run();
  add_facts(*read);
}

void run_catalogue::add_facts(const stored_run& run) {
  const auto id = database_->last_row();
  database_statement fact(*database_, "INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5)");
  const auto put = [&](std::int64_t kind, const std::string& name, const std::string* text,
                       std::optional<double> number) {
    fact.bind(1, id).bind(2, kind).bind(3, name);
    text ? fact.bind(4, *text) : fact.bind_null(4);
    number ? fact.bind(5, *number) : fact.bind_null(5);
    fact.run();
  };
  for (const auto& [name, member] : attributes())
    put(attribute, name, &(run.*member), std::nullopt);
  for (const auto& [name, text] : run.keys)
    put(scenario_key, name, &text, number_in(text));
  for (const auto& [name, number] : run.figures) // those without a value as well
    put(figure, name, nullptr, number);
}

std::vector<stored_run> run_catalogue::find(const std::vector<run_filter>& filters) const {
  std::string sql = "SELECT id, folder FROM runs";
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const auto& comparison = filters[i].comparison;
    const bool unequal = comparison == "!=", ordered = !unequal && comparison != "=";
    const auto value = std::to_string(2 * i + 2);
    const auto held = ordered                       ? fmt::format("number {} CAST(?{} AS REAL)", comparison, value)
                      : number_in(filters[i].value) ? fmt::format("(text = ?{0} OR number = CAST(?{0} AS REAL))", value)
                                                    : "text = ?" + value;
    sql += fmt::format("{} {}EXISTS (SELECT 1 FROM facts WHERE run = runs.id AND name = ?{} AND {})",
                       i == 0 ? " WHERE" : " AND", unequal ? "NOT " : "", 2 * i + 1, held);
  }
  database_statement rows(*database_, sql + " ORDER BY folder");
  for (std::size_t i = 0; i < filters.size(); ++i)
    rows.bind(static_cast<int>(2 * i + 1), filters[i].name).bind(static_cast<int>(2 * i + 2), filters[i].value);
  std::vector<stored_run> found;
  while (rows.next())
    found.push_back(loaded(rows.integer(0), rows.text(1)));
  return found;
}

stored_run run_catalogue::loaded(std::int64_t run, const std::string& folder) const {
  stored_run made{.folder = folder == "." ? folder_ : folder_ / folder};
  const auto members = attributes();
  database_statement facts(*database_, "SELECT kind, name, text, number FROM facts WHERE run = ?1");
  facts.bind(1, run);
  while (facts.next()) {
    const auto name = facts.text(1);
    if (facts.integer(0) == scenario_key)
      made.keys[name] = facts.text(2);
    else if (facts.integer(0) == figure)
      made.figures[name] = facts.is_null(3) ? std::nullopt : std::optional(facts.number(3));
    else
      for (const auto& [known, member] : members)
        if (name == known)
          made.*member = facts.text(2);
  }
  if (const auto seed = made.keys.find("seed"); seed != made.keys.end())
    made.seed = std::atoll(seed->second.c_str());
  return made;
}

std::vector<std::string> run_catalogue::names() const {
  std::vector<std::string> names;
  for (database_statement rows(*database_, "SELECT DISTINCT name FROM facts ORDER BY name"); rows.next();)
    names.push_back(rows.text(0));
  return names;
}

} // namespace mneme
