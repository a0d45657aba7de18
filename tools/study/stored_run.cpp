#include "tools/study/stored_run.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/scenario/layers.hpp"
#include "runtime/scenario/rename_keys.hpp"
#include "runtime/scenario/values.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr int depth_max = 3;
constexpr std::uintmax_t file_bytes_max = 1 << 30;

bool is_file(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

/// Content of a regular file; "" if there is no such file.
std::string text_of(const fs::path& file) {
  std::error_code none;
  if (!is_file(file) || fs::file_size(file, none) > file_bytes_max)
    return {};
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the member if it is a string, else "".
std::string word_in(const json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

/// Adds all numbers of an object. Nested ones get names like "time_to_accuracy.70".
void add_figures(std::map<std::string, std::optional<double>>& to, const json& object, const std::string& lead) {
  for (const auto& [name, value] : object.items())
    if (value.is_number() || value.is_null())
      to[lead + name] = value.is_null() ? std::nullopt : std::optional(value.get<double>());
    else if (value.is_object() && lead.empty())
      add_figures(to, value, name + ".");
}

std::string plain_text(const toml::node& value) {
  const auto* text = value.as_string();
  return text ? text->get() : value_text(value);
}

/// Keys of scenario.toml as "section.key", with their values.
expected<std::map<std::string, std::string>> keys_in(const fs::path& file) {
  if (!is_file(file))
    return failed(file.string(), "is missing: this is not the folder of a run, or the run ended before it started");
  std::vector<scenario_error> problems;
  auto read = parse_layer(file.string(), text_of(file), problems);
  if (!problems.empty())
    return failed(place_text(problems.front().at), problems.front().text + "; the run directory is damaged");
  static_cast<void>(rename_keys({&read, 1}, read.values["strategy"]["name"].value_or(std::string{})));
  std::map<std::string, std::string> keys;
  for (const auto& [name, node] : read.values) {
    const std::string word(name.str());
    if (const auto* section = node.as_table())
      for (const auto& [key, value] : *section)
        keys[word + "." + std::string(key.str())] = plain_text(value);
    else
      keys[word] = plain_text(node);
  }
  return keys;
}

/// Returns an error for each value in which summary.json and scenario.toml disagree.
diagnostics disagreements(const stored_run& run) {
  diagnostics problems;
  const auto compare = [&](const char* key, const char* name, const std::string& summed) {
    const auto at = run.keys.find(key);
    const std::string said = at == run.keys.end() ? "nothing" : at->second;
    if (said != summed)
      problems.push_back(
          {run.folder.string(), fmt::format("mixed: summary.json is of a run with {} = {}, but scenario.toml has {}; "
                                            "the folder contains files of different runs",
                                            name, summed, said)});
  };
  compare("seed", "seed", std::to_string(run.seed));
  compare("strategy.name", "strategy", run.strategy);
  compare("data.name", "dataset", run.dataset);
  return problems;
}

constexpr const char* damaged_summary =
    "is damaged: expected one JSON object; move it away and `mneme resume` the run, which writes it again";

expected<stored_run> with_summary(stored_run run, const fs::path& file) {
  const auto summary = json::parse(text_of(file), nullptr, false);
  if (!summary.is_object())
    return failed(file.string(), damaged_summary);
  for (auto& [name, member] : std::map<const char*, std::string*>{{"status", &run.status},
                                                                  {"mneme_version", &run.version},
                                                                  {"scenario", &run.scenario},
                                                                  {"scenario_digest", &run.scenario_digest},
                                                                  {"run_digest", &run.run_digest},
                                                                  {"strategy", &run.strategy},
                                                                  {"dataset", &run.dataset}}) {
    *member = word_in(summary, name);
    if (member->empty())
      return failed(file.string(), fmt::format("is damaged: it has no '{}'; run the scenario again", name));
  }
  const auto seed = summary.find("seed");
  if (seed == summary.end() || !seed->is_number_integer())
    return failed(file.string(), "is damaged: it has no 'seed'; run the scenario again");
  run.seed = seed->get<std::int64_t>();
  run.error = word_in(summary, "error");
  run.device = word_in(summary, "device");
  if (const auto machine = summary.find("machine"); machine != summary.end() && machine->is_object())
    for (const auto& [name, value] : machine->items())
      run.machine[name] = value.is_string() ? value.get<std::string>() : value.dump();
  add_figures(run.figures, summary, "");
  run.figures.erase("digest_epoch");
  const auto epoch = summary.find("digest_epoch");
  run.digest_epoch = epoch != summary.end() && epoch->is_number_integer() ? epoch->get<std::int64_t>() : 1;
  run.machine["digest_epoch"] = std::to_string(run.digest_epoch);
  if (auto errors = disagreements(run); !errors.empty())
    return tl::unexpected(std::move(errors));
  return run;
}

stored_run without_summary(stored_run run, const json& origin) {
  run.status = "unfinished";
  if (origin.is_object()) {
    run.scenario = word_in(origin, "scenario");
    run.version = word_in(origin, "mneme_version");
    run.scenario_digest = word_in(origin, "scenario_digest");
  }
  run.strategy = run.keys["strategy.name"];
  run.dataset = run.keys["data.name"];
  run.seed = std::atoll(run.keys["seed"].c_str());
  return run;
}

/// Virtual time in "virtual_s" of a line.
virtual_time time_in(const json& line) {
  const double seconds = std::clamp(line.at("virtual_s").get<double>(), 0.0, 9e9);
  return virtual_time(virtual_duration(std::llround(1e9 * seconds)));
}

/// Parses a line of metrics.jsonl. @throws json::exception if a member is missing or has the wrong type
evaluation_record evaluation_of(const json& line) {
  evaluation_record record;
  const auto task = line.at("task").get<std::int64_t>(), round = line.at("round").get<std::int64_t>();
  record.task = task_id{static_cast<std::uint32_t>(std::max<std::int64_t>(task, 1) - 1)};
  record.round = round_id{static_cast<std::uint32_t>(std::max<std::int64_t>(round, 1) - 1)};
  record.at = time_in(line);
  record.accuracy = line.at("accuracy").get<double>();
  record.accuracy_per_task = line.at("accuracy_per_task").get<std::vector<double>>();
  record.loss = line.at("loss").is_null() ? 0.0 : line.at("loss").get<double>();
  record.upload_bytes = line.at("upload_bytes").get<std::int64_t>();
  record.download_bytes = line.at("download_bytes").get<std::int64_t>();
  record.clients_enrolled = line.at("clients_enrolled").get<std::int64_t>();
  record.client_rounds = line.at("client_rounds").get<std::int64_t>();
  record.late_uploads = line.at("late_uploads").get<std::int64_t>();
  record.dropped = line.at("dropped").get<std::int64_t>();
  if (!line.at("forgetting").is_null())
    record.forgetting = line.at("forgetting").get<double>();
  if (line.contains("perplexity"))
    record.perplexity = line.at("perplexity").get<double>();
  if (line.contains("epsilon"))
    record.epsilon = line.at("epsilon").get<double>();
  if (line.contains("training_loss") && !line.at("training_loss").is_null()) // runs of earlier versions do not have it
    record.training_loss = line.at("training_loss").get<double>();
  if (line.contains("training_loss_terms"))
    for (const auto& [name, value] : line.at("training_loss_terms").items())
      if (!value.is_null())
        record.training_loss_terms[name] = value.get<double>();
  if (line.contains("personal_accuracy"))
    record.personal = {.clients = line.at("personal_clients").get<std::int64_t>(),
                       .before = line.at("personal_accuracy_before").get<double>(),
                       .mean = line.at("personal_accuracy").get<double>(),
                       .deciles = line.at("personal_accuracy_deciles").get<std::vector<double>>()};
  return record;
}

/// Parses a line of timeline.jsonl. @throws json::exception if a member is missing or has the wrong type
timeline_bin bin_of(const json& line) {
  timeline_bin bin;
  const auto number = [&](const char* name) { return line.at(name).get<std::int64_t>(); };
  const auto from_one = [&](const char* name) {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(number(name), 1) - 1);
  };
  bin.first = round_id{from_one("first_round")};
  bin.last = round_id{from_one("round")};
  bin.task = task_id{from_one("task")};
  bin.at = time_in(line);
  bin.in_flight = number("in_flight");
  bin.in_flight_max = number("in_flight_max");
  bin.clients_enrolled = number("clients_enrolled");
  bin.client_rounds = number("client_rounds");
  bin.late_uploads = number("late_uploads");
  bin.dropped = number("dropped");
  bin.upload_bytes = number("upload_bytes");
  bin.download_bytes = number("download_bytes");
  if (const auto& mean = line.at("staleness_mean"); !mean.is_null())
    bin.staleness_sum = std::llround(mean.get<double>() * static_cast<double>(bin.client_rounds));
  if (line.contains("training_loss") && !line.at("training_loss").is_null())
    bin.training_loss = line.at("training_loss").get<double>();
  return bin;
}

/// Parses each line of the file, a JSON object, with `made`. Fails with file and line.
template <class Made>
auto lines_of(const fs::path& file, const char* text, Made made) -> expected<std::vector<decltype(made(json{}))>> {
  std::error_code none;
  if (!fs::exists(file, none))
    return failed(file.string(), "is missing; run the scenario again");
  auto in = open_stream(file);
  if (!in)
    return failed(file.string(), in.error());
  std::vector<decltype(made(json{}))> records;
  for (std::string line; std::getline(*in, line);)
    try {
      records.push_back(made(json::parse(line)));
    } catch (const json::exception&) {
      return failed(fmt::format("{}:{}", file.string(), records.size() + 1),
                    fmt::format("is damaged: expected {} as a JSON object; run the scenario again", text));
    }
  return records;
}

void find_runs(const fs::path& folder, int depth, std::vector<fs::path>& into) {
  if (is_run_folder(folder))
    return into.push_back(folder);
  std::error_code failed;
  if (depth < depth_max)
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
      if (std::error_code none; at->is_directory(none) && !at->is_symlink(none))
        find_runs(at->path(), depth + 1, into);
}

} // namespace

bool is_run_folder(const fs::path& folder) {
  return is_file(folder / "scenario.toml") || is_file(folder / "summary.json");
}

std::vector<fs::path> run_folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  find_runs(folder, 0, folders);
  std::sort(folders.begin(), folders.end());
  return folders;
}

expected<stored_run> read_stored_run(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none))
    return failed(folder.string(), "is not a folder; expected the folder of a run, as in runs/NAME");
  auto keys = keys_in(folder / "scenario.toml");
  if (!keys)
    return tl::unexpected(keys.error());
  stored_run run{.folder = folder, .keys = std::move(*keys)};
  const auto origin = json::parse(text_of(folder / "checkpoint" / "run.json"), nullptr, false);
  if (origin.is_object())
    run.data_digest = word_in(origin, "data_digest");
  const auto summary = folder / "summary.json";
  if (!fs::exists(fs::symlink_status(summary, none)))
    return without_summary(std::move(run), origin);
  if (const auto text = unreadable_text(summary, file_bytes_max); !text.empty())
    return failed(summary.string(), text);
  return with_summary(std::move(run), summary);
}

stored_run make_damaged_run(const fs::path& folder, const diagnostic& problem) {
  const auto within = folder.string() + "/";
  const auto where = problem.where.starts_with(within) ? problem.where.substr(within.size()) : problem.where;
  stored_run run{.folder = folder, .status = "damaged", .error = where + ": " + problem.text};
  const auto origin = json::parse(text_of(folder / "checkpoint" / "run.json"), nullptr, false);
  if (origin.is_object()) {
    run.version = word_in(origin, "mneme_version");
    run.scenario_digest = word_in(origin, "scenario_digest");
  }
  return run;
}

expected<std::vector<evaluation_record>> read_evaluations(const fs::path& folder) {
  auto records = lines_of(folder / "metrics.jsonl", "an evaluation", evaluation_of);
  for (std::size_t i = 0; records && i < records->size(); ++i)
    (*records)[i].end_of_task = i + 1 == records->size() || (*records)[i + 1].task != (*records)[i].task;
  return records;
}

expected<std::vector<timeline_bin>> read_timeline(const fs::path& folder) {
  return lines_of(folder / "timeline.jsonl", "some rounds", bin_of);
}

expected<std::vector<class_accuracy>> read_class_accuracies(const fs::path& folder) {
  const auto file = folder / "accuracy_per_class.csv";
  std::vector<class_accuracy> classes;
  if (!is_file(file))
    return classes;
  const auto text = text_of(file);
  csv::record_reader records(text);
  static_cast<void>(records.next()); // the header: after_task, class, name, rows, accuracy
  while (records.next()) {
    const auto& fields = records.fields();
    class_accuracy read;
    if (!records.error().empty() || fields.size() != 5 || !csv::parse_number(fields[0], read.task.value) ||
        read.task.value == 0 || !csv::parse_number(fields[1], read.label) ||
        !csv::parse_number(fields[4], read.accuracy))
      return failed(fmt::format("{}:{}", file.string(), records.line()),
                    "is damaged: expected the accuracy on a class after a task; run the scenario again");
    --read.task.value;
    read.name = std::string(fields[2]);
    classes.push_back(std::move(read));
  }
  return classes;
}

expected<std::vector<client_class_rows>> read_client_classes(const fs::path& folder) {
  const auto file = folder / "client_classes.csv";
  std::vector<client_class_rows> held;
  if (!is_file(file))
    return held;
  const auto text = text_of(file);
  csv::record_reader records(text);
  static_cast<void>(records.next()); // the header: task, client, class, name, rows
  while (records.next()) {
    const auto& fields = records.fields();
    client_class_rows read;
    if (!records.error().empty() || fields.size() != 5 || !csv::parse_number(fields[1], read.client) ||
        !csv::parse_number(fields[2], read.label) || !csv::parse_number(fields[4], read.rows))
      return failed(fmt::format("{}:{}", file.string(), records.line()),
                    "is damaged: expected the rows of a class that a client holds; run the scenario again");
    read.name = std::string(fields[3]);
    held.push_back(std::move(read));
  }
  return held;
}

const std::string* run_value(const stored_run& run, const std::string& name) {
  const std::map<std::string, const std::string*> said{{"scenario", &run.scenario}, {"strategy", &run.strategy},
                                                       {"dataset", &run.dataset},   {"version", &run.version},
                                                       {"status", &run.status},     {"device", &run.device}};
  if (const auto at = said.find(name); at != said.end())
    return at->second;
  const auto* const renamed = entry_of_old_name(name, run.strategy);
  const auto at = run.keys.find(renamed ? full_new_name(*renamed) : name);
  return at == run.keys.end() ? nullptr : &at->second;
}

} // namespace mneme
