#include "tools/study/run_catalogue.hpp"
#include "runtime/base/digest.hpp"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <tuple>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t format_version = 3; // version 3: renamed keys have their new names
// Kinds of facts: attribute of the run, key of its scenario, figure of its summary.
constexpr std::int64_t attribute = 0, scenario_key = 1, figure = 2;

// There are no indexes except primary keys, so that queries read only data that expect_whole() has checked.
constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, folder TEXT NOT NULL, stamp TEXT NOT NULL,
                                 digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS facts (run INTEGER NOT NULL REFERENCES runs(id), kind INTEGER NOT NULL, name TEXT NOT NULL,
                                  text TEXT, number REAL, PRIMARY KEY (run, kind, name)) WITHOUT ROWID;
)";

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  return is_number && !std::isnan(value) ? std::optional(value) : std::nullopt;
}

/// Sizes and modification times of the run's files; the text changes when a file changes.
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

/// Attributes of a run with their names in the catalogue.
std::vector<std::pair<const char*, std::string stored_run::*>> attributes() {
  return {{"status", &stored_run::status},           {"version", &stored_run::version},
          {"scenario", &stored_run::scenario},       {"scenario_digest", &stored_run::scenario_digest},
          {"run_digest", &stored_run::run_digest},   {"strategy", &stored_run::strategy},
          {"dataset", &stored_run::dataset},         {"device", &stored_run::device},
          {"data_digest", &stored_run::data_digest}, {"error", &stored_run::error}};
}

bool is_current(const database& held) {
  database_statement version(held, "PRAGMA user_version");
  return version.next() && version.integer(0) == format_version;
}

/// Creates the tables in one transaction, so that other processes find them complete or not at all.
void make_tables(const database& held) {
  held.run(fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version = {}; COMMIT", schema, format_version));
}

/// Row of the table `facts`.
struct stored_fact {
  std::int64_t kind = attribute;
  std::string name{};
  std::optional<std::string> text{};
  std::optional<double> number{};
};

/// All facts of a run, in the order of the table's key.
std::vector<stored_fact> facts_of(const stored_run& run) {
  std::vector<stored_fact> facts;
  for (const auto& [name, member] : attributes())
    facts.push_back({.kind = attribute, .name = name, .text = run.*member});
  for (const auto& [name, text] : run.keys)
    facts.push_back({.kind = scenario_key, .name = name, .text = text, .number = number_in(text)});
  for (const auto& [name, number] : run.figures) // this includes metrics without a value
    facts.push_back({.kind = figure, .name = name, .number = number});
  std::sort(facts.begin(), facts.end(), [](const stored_fact& a, const stored_fact& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  return facts;
}

/// Digest of a run's row and of its facts, in the order of the table's key.
class row_digest {
public:
  row_digest(const std::string& folder, const std::string& stamp) {
    add(folder);
    add(stamp);
  }
  void add(const stored_fact& fact) {
    digest_.add(fact.kind);
    add(fact.name);
    add(fact.text.value_or("-"));
    digest_.add(fact.text.has_value());
    digest_.add(fact.number.value_or(1.0) + 0.0); // + 0.0 is needed because SQLite does not keep the sign of zero
    digest_.add(fact.number.has_value());
  }
  [[nodiscard]] std::string text() const { return hex_text(digest_.value()); }

private:
  void add(const std::string& text) { digest_.add(digest_of(std::as_bytes(std::span(text)))); }
  run_digest digest_;
};

stored_fact fact_in(const database_statement& row, int column) {
  return {.kind = row.integer(column),
          .name = row.text(column + 1),
          .text = row.is_null(column + 2) ? std::nullopt : std::optional(row.text(column + 2)),
          .number = row.is_null(column + 3) ? std::nullopt : std::optional(row.number(column + 3))};
}

/// Throws damaged_database if pages, runs or facts differ from those that were written.
void expect_whole(const database& held, const std::string& file) {
  const auto fail = [&](const std::string& reason) { throw damaged_database(file + ": " + reason); };
  held.run("BEGIN"); // a transaction gives a consistent state, even if other processes write
  if (database_statement check(held, "PRAGMA quick_check(1)"); !check.next() || check.text(0) != "ok")
    fail(check.text(0));
  struct row {
    row_digest digest;
    std::string stated;
  };
  std::map<std::int64_t, row> rows;
  for (database_statement runs(held, "SELECT id, folder, stamp, digest FROM runs"); runs.next();)
    rows.try_emplace(runs.integer(0), row{row_digest(runs.text(1), runs.text(2)), runs.text(3)});
  for (database_statement facts(held, "SELECT run, kind, name, text, number FROM facts ORDER BY run, kind, name");
       facts.next();) {
    const auto of_run = rows.find(facts.integer(0));
    if (of_run == rows.end())
      fail("it has facts without a run");
    of_run->second.digest.add(fact_in(facts, 1));
  }
  for (const auto& [id, checked] : rows)
    if (checked.digest.text() != checked.stated)
      fail("the facts of a run have another digest than when they were written");
  held.run("COMMIT");
}

} // namespace

expected<run_filter> parse_filter(const std::string& text) {
  const auto at = text.find_first_of("=!<>");
  run_filter filter{.name = text.substr(0, std::min(at, text.size()))};
  if (at != std::string::npos) {
    const bool two = at + 1 < text.size() && text[at + 1] == '=' && text[at] != '=';
    filter.comparison = text.substr(at, two ? 2 : 1);
    filter.value = text.substr(at + filter.comparison.size());
  }
  if (filter.name.empty() || filter.value.empty() || filter.comparison == "!")
    return failed("", "--where '" + text +
                          "': expected a name, one of = != < <= > >=, and a value, as in --where "
                          "rounds.cohort=5 or --where 'final_accuracy>=70'");
  return filter;
}

run_catalogue::run_catalogue(fs::path folder) : folder_(std::move(folder)) {
  const auto file = folder_ / file_name;
  try {
    try {
      open(file);
      expect_whole(*database_, file.string());
    } catch (const damaged_database& damage) {
      damage_ = {{file.string(), std::string("is damaged (") + damage.what() + "); it is rebuilt from the runs"}};
      make_again(file);
    }
    refresh();
    return;
  } catch (const std::runtime_error&) {
    database_.reset(); // the file is not writable, the disk is full, or another process has locked the file
  }
  open(":memory:");
  refresh();
}

void run_catalogue::open(const fs::path& file) {
  std::error_code none;
  const bool is_new = fs::file_size(file, none) == 0 || none;
  database_ = std::make_unique<database>(file);
  if (!is_new && !is_current(*database_))
    return make_again(file);
  if (is_new)
    make_tables(*database_);
}

void run_catalogue::make_again(const fs::path& file) {
  database_.reset();
  for (const char* ending : {"", "-journal"}) {
    std::error_code ignored;
    fs::remove(file.string() + ending, ignored);
  }
  database_ = std::make_unique<database>(file);
  make_tables(*database_);
}

void run_catalogue::refresh() {
  std::map<std::string, std::string> gone; // stamps of removed or changed folders
  for (database_statement rows(*database_, "SELECT folder, stamp FROM runs"); rows.next();)
    gone[rows.text(0)] = rows.text(1);
  std::vector<std::pair<fs::path, std::string>> changed;
  for (const auto& path : run_folders_in(folder_)) {
    auto stamp = stamp_of(path);
    const auto entry = gone.find(path.lexically_relative(folder_).string());
    const bool equal = entry != gone.end() && entry->second == stamp;
    if (entry != gone.end())
      gone.erase(entry);
    if (!equal)
      changed.emplace_back(path, std::move(stamp));
  }
  if (changed.empty() && gone.empty())
    return;
  database_->run("BEGIN IMMEDIATE");
  std::multimap<std::string, std::int64_t> known; // read again, because another process may have changed them
  for (database_statement rows(*database_, "SELECT folder, id FROM runs"); rows.next();)
    known.emplace(rows.text(0), rows.integer(1));
  const auto forget = [&](const std::string& name) {
    const auto [first, last] = known.equal_range(name);
    for (auto at = first; at != last; ++at)
      forget_run(at->second);
  };
  for (const auto& [name, stamp] : gone)
    forget(name);
  for (const auto& [path, stamp] : changed) {
    forget(path.lexically_relative(folder_).string());
    add(path, stamp);
  }
  database_->run("COMMIT");
}

void run_catalogue::forget_run(std::int64_t id) {
  database_statement(*database_, "DELETE FROM facts WHERE run = ?1").bind(1, id).run();
  database_statement(*database_, "DELETE FROM runs WHERE id = ?1").bind(1, id).run();
}

void run_catalogue::add(const fs::path& folder, const std::string& stamp) {
  auto read = read_stored_run(folder);
  if (!read)
    read = make_damaged_run(folder, read.error().front());
  const auto name = folder.lexically_relative(folder_).string();
  const auto facts = facts_of(*read);
  row_digest digest(name, stamp);
  for (const auto& fact : facts)
    digest.add(fact);
  database_statement row(*database_, "INSERT INTO runs (folder, stamp, digest) VALUES (?1, ?2, ?3)");
  row.bind(1, name).bind(2, stamp).bind(3, digest.text()).run();
  const auto id = database_->last_row();
  database_statement put(*database_, "INSERT INTO facts VALUES (?1, ?2, ?3, ?4, ?5)");
  for (const auto& fact : facts) {
    put.bind(1, id).bind(2, fact.kind).bind(3, fact.name);
    fact.text ? put.bind(4, *fact.text) : put.bind_null(4);
    fact.number ? put.bind(5, *fact.number) : put.bind_null(5);
    put.run();
  }
}

std::vector<stored_run> run_catalogue::find(const std::vector<run_filter>& filters) const {
  std::string sql = "SELECT id, folder FROM runs";
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const auto& comparison = filters[i].comparison;
    const bool unequal = comparison == "!=", ordered = !unequal && comparison != "=";
    const auto value = std::to_string(3 * i + 3);
    const auto held = ordered                       ? fmt::format("number {} CAST(?{} AS REAL)", comparison, value)
                      : number_in(filters[i].value) ? fmt::format("(text = ?{0} OR number = CAST(?{0} AS REAL))", value)
                                                    : "text = ?" + value;
    sql += fmt::format(
        "{} {}EXISTS (SELECT 1 FROM facts WHERE run = runs.id AND kind IN (0, 1, 2) AND name IN (?{}, ?{}) AND "
        "{})",
        i == 0 ? " WHERE" : " AND", unequal ? "NOT " : "", 3 * i + 1, 3 * i + 2, held);
  }
  database_statement rows(*database_, sql + " ORDER BY folder");
  for (std::size_t i = 0; i < filters.size(); ++i)
    for (int k = static_cast<int>(3 * i) + 1;
         const auto& text : {filters[i].name, filters[i].other_name, filters[i].value})
      rows.bind(k++, text);
  std::vector<stored_run> runs;
  while (rows.next())
    runs.push_back(loaded(rows.integer(0), rows.text(1)));
  return runs;
}

stored_run run_catalogue::loaded(std::int64_t run, const std::string& folder) const {
  stored_run stored{.folder = folder == "." ? folder_ : folder_ / folder};
  const auto members = attributes();
  database_statement facts(*database_, "SELECT kind, name, text, number FROM facts WHERE run = ?1");
  facts.bind(1, run);
  while (facts.next()) {
    const auto name = facts.text(1);
    if (facts.integer(0) == scenario_key)
      stored.keys[name] = facts.text(2);
    else if (facts.integer(0) == figure)
      stored.figures[name] = facts.is_null(3) ? std::nullopt : std::optional(facts.number(3));
    else
      for (const auto& [known, member] : members)
        if (name == known)
          stored.*member = facts.text(2);
  }
  if (const auto seed = stored.keys.find("seed"); seed != stored.keys.end())
    stored.seed = std::atoll(seed->second.c_str());
  return stored;
}

std::vector<std::string> run_catalogue::names() const {
  std::vector<std::string> names;
  for (database_statement rows(*database_, "SELECT DISTINCT name FROM facts ORDER BY name"); rows.next();)
    names.push_back(rows.text(0));
  return names;
}

} // namespace mneme
