#include "actors/run/simulation.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/sections.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/cli/temporary_file.hpp"
#include "tools/cli/user_data.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <sstream>
namespace mneme {
namespace {

/// Candidate settings of tasks and net. The first that fits data set and method is used.
std::vector<overrides> usual_choices() {
  std::vector<overrides> choices;
  for (const char* net : {"", "lenet", "resnet18", "vit"})
    for (const char* tasks : {"5", "7", "10", "2", "3", "domains", "single"}) {
      overrides choice;
      const std::string word = tasks;
      if (word == "single")
        choice.emplace_back("tasks.kind", "single");
      else if (word == "domains")
        choice = {{"tasks.kind", "domain-incremental"}, {"tasks.transform", "domains"}};
      else
        choice.emplace_back("tasks.count", word);
      if (*net)
        choice.emplace_back("model.name", net);
      choices.push_back(std::move(choice));
    }
  return choices;
}

/// True if the classes divide evenly over the tasks. Other scenarios are valid but cause a warning.
bool has_even_tasks(const tasks_section& tasks, std::int64_t classes_of_data) {
  const auto classes = tasks.classes > 0 ? tasks.classes : classes_of_data;
  const auto later = tasks.count - (tasks.first_classes > 0 ? 1 : 0);
  if (tasks.kind != task_kind::class_incremental || !tasks.sizes.empty() || later < 1)
    return true;
  return (classes - tasks.first_classes) % later == 0;
}

struct new_scenario_choice {
  scenario settings{};
  overrides choice{};
};

const overrides no_weights{{"model.weights", "\"as-drawn\""}}; ///< lets frozen nets keep their random weights
const overrides pictures{{"data.shape", "[3, 32, 32]"},
                         {"data.rows", "10000"}}; ///< synthetic images, for nets that accept images only

bool is_among(const std::string& key, const overrides& settings) {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) { return setting.first == key; });
}

/// True if `no_weights` can fix one of the errors.
bool asks_for_weights(const diagnostics& errors) {
  return std::any_of(errors.begin(), errors.end(),
                     [](const auto& problem) { return problem.text.find("as-drawn") != std::string::npos; });
}

/// Returns the first preferred choice that `fits`, otherwise the first choice that fits. A choice whose errors demand
/// weights is also tried with untrained ones. If none fits, fails with the errors of the first choice whose keys are
/// valid.
/// @param settings settings of the user, which override choices
template <class Fits, class Prefers>
expected<new_scenario_choice> first_fitting(const std::string& file, bool is_made_up, const overrides& settings,
                                            Fits fits, Prefers prefers) {
  diagnostics first;
  const auto fit_error = [&](const overrides& choice, std::optional<new_scenario_choice>& fitting) {
    const auto read = read_scenario(file, choice);
    auto errors = read ? fits(read->value) : read.error();
    if (errors.empty())
      fitting = {read->value, choice};
    return errors;
  };
  for (const auto& shape : is_made_up ? std::vector<overrides>{{}, pictures} : std::vector<overrides>{{}}) {
    std::optional<new_scenario_choice> second_best;
    for (auto choice : usual_choices()) {
      choice.insert(choice.end(), shape.begin(), shape.end());
      std::erase_if(choice, [&](const auto& usual) { return is_among(usual.first, settings); });
      choice.insert(choice.end(), settings.begin(), settings.end());
      std::optional<new_scenario_choice> fitting;
      auto errors = fit_error(choice, fitting);
      if (asks_for_weights(errors) && !is_among(no_weights.front().first, settings)) {
        choice.insert(choice.end(), no_weights.begin(), no_weights.end());
        errors = fit_error(choice, fitting);
      }
      if (fitting && prefers(fitting->settings))
        return *fitting;
      if (fitting && !second_best)
        second_best = fitting;
      if (fitting)
        continue;
      if (first.empty() || (first.front().where == "--set" && errors.front().where != "--set"))
        first = errors;
    }
    if (second_best)
      return *second_best;
  }
  return tl::unexpected(without_places_in(file, std::move(first)));
}

constexpr std::size_t columns_max = 100;

/// Formats the text as comment lines of at most 100 columns. A longer word gets its own line.
std::string comment_lines(const std::string& text) {
  std::string lines, line = "#";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > columns_max && line.find_last_not_of("# ") != std::string::npos) {
      lines += line + "\n";
      line = "#  ";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

std::string commented(const section& group, const std::set<std::string>& said) {
  std::string text;
  for (const auto& key : group.keys.all()) {
    const auto name = group.name.empty() ? key.name : group.name + "." + key.name;
    text += comment_lines(fmt::format("{}. {}", expected_text(key), key.meaning)) +
            fmt::format("{}{} = {}\n", said.contains(name) ? "" : "# ", key.name, current_text(key));
  }
  return text;
}

/// Formats every key with its legal values, meaning and value. Keys with default values are commented out.
std::string scenario_text(new_scenario_choice written, const std::string& lead) {
  std::set<std::string> said{"title", "seed", "data.name", "strategy.name"};
  if (const auto source = data_source_named(written.settings.data.name); source.is_own)
    said.insert({source.own_file ? "data.file" : "data.root", "data.test_share"});
  for (const auto& [key, value] : written.choice) {
    const auto* const renamed = entry_of_old_name(key, written.settings.strategy.name);
    said.insert(renamed ? full_new_name(*renamed) : key);
  }
  written.settings.title = written.settings.strategy.name + " on " + written.settings.data.name;
  auto text = lead;
  for (const auto& group : sections_of(written.settings)) {
    if (!group.name.empty())
      text += fmt::format("\n{}[{}]\n", comment_lines(group.meaning), group.name);
    text += commented(group, said);
  }
  return text;
}

diagnostics unknown_names(const new_arguments& arguments) {
  diagnostics errors;
  const auto check = [&](const char* kind, const std::string& word, const auto& entries) {
    std::vector<std::string> names;
    for (const auto& entry : entries)
      names.push_back(entry.name);
    if (std::find(names.begin(), names.end(), word) != names.end())
      return;
    const auto meant = closest_match(word, names);
    errors.push_back(
        {"", fmt::format("unknown {} '{}'; {}", kind, word,
                         meant.empty() ? "expected one of " + join_by_comma(names) : "did you mean '" + meant + "'?")});
  };
  if (arguments.names.size() != 2)
    return {{"", "expected mneme new METHOD DATASET, as in mneme new fedprox mnist"}};
  check("strategy", arguments.names[0], strategies());
  if (std::error_code ignored; !std::filesystem::exists(arguments.names[1], ignored) &&
                               arguments.names[1].find_first_of("./") != std::string::npos)
    errors.push_back(
        {arguments.names[1],
         "does not exist; expected a data set (see mneme list datasets), an image folder, or a data file"});
  else if (!std::filesystem::exists(arguments.names[1], ignored) || !data_source_named(arguments.names[1]).name.empty())
    check("data set", arguments.names[1], data_sources());
  std::error_code none;
  using kind = std::filesystem::file_type;
  const auto there = std::filesystem::status(arguments.file, none).type();
  const bool takes_all = there == kind::character || there == kind::fifo;
  if (!arguments.file.empty() && there != kind::not_found && !takes_all)
    errors.push_back({"", "'" + arguments.file + "' already exists; choose a new file"});
  return errors;
}

/// Reads a data set or user data. @param word name of a data set, or a path
expected<user_data_report> inspect_data_word(const std::string& word, const overrides& settings) {
  if (!data_source_named(word).name.empty()) {
    data_section section;
    section.name = word;
    return inspect_data_section(section, settings);
  }
  const auto section = section_of_path(word);
  if (!section)
    return failed(word, "is neither an image folder nor a file with the extension .npz, .safetensors, .npy or .csv");
  auto look = inspect_data_section(*section, settings);
  if (look && !look->rows)
    return tl::unexpected(look->rows.error());
  return look;
}

bool is_quoted(const std::string& value) {
  return value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.front() == value.back();
}

/// Warnings for settings with an old name or an old word. Those of [data] have been reported with the data.
diagnostics deprecated_settings(const overrides& settings, const std::string& method) {
  diagnostics deprecated;
  for (const auto& [key, value] : settings) {
    const auto* entry = entry_of_old_name(key, method);
    if (entry && entry->section != "data")
      deprecated.push_back({"--set", deprecation_text(key, full_new_name(*entry))});
    if (const auto dot = key.find('.'); !entry && dot != std::string::npos)
      entry = find_renamed(key.substr(0, dot), key.substr(dot + 1), method);
    if (!entry)
      continue;
    const std::string word = is_quoted(value) ? value.substr(1, value.size() - 2) : value;
    if (const std::string now(entry->new_word(word)); now != word)
      deprecated.push_back(
          {"--set", deprecation_text(full_new_name(*entry) + " = " + quote_text(word), quote_text(now))});
  }
  return deprecated;
}

std::string settings_text(const std::vector<std::string>& settings) {
  std::string words;
  for (const auto& setting : settings)
    words += " --set " + setting;
  return words;
}

} // namespace

int new_scenario(const new_arguments& arguments) {
  if (const auto errors = unknown_names(arguments); !errors.empty())
    return print_errors(errors);
  const auto settings = parse_settings(arguments.settings);
  if (!settings)
    return print_errors(settings.error());
  const auto look = inspect_data_word(arguments.names[1], *settings);
  if (!look)
    return print_errors(look.error());
  print_warnings(look->warnings, warning_style::text);
  const temporary_file file(".toml");
  const auto& rows = look->rows;
  write_atomically(file.path(),
                   fmt::format("[data]\n{}[strategy]\nname = \"{}\"\n", data_lines(look->section), arguments.names[0]));
  auto fitting = first_fitting(
      file.path(), look->section.name == "synthetic", *settings,
      [&](const scenario& settings) {
        const bool has_other_rows = settings.data.shape != look->section.shape;
        return rows ? check_against_data(settings, has_other_rows ? nullptr : &*rows) : diagnostics{};
      },
      [&](const scenario& settings) { return !rows || has_even_tasks(settings.tasks, rows->classes); });
  if (!fitting)
    return print_errors(fitting.error());
  print_warnings(deprecated_settings(*settings, arguments.names[0]), warning_style::text);
  print_warnings(data_warnings(look->section), warning_style::text);
  if (!rows)
    std::fprintf(stderr, "warning: %s\nthe scenario was written without reading the data\n",
                 rows.error().front().text.c_str());
  if (std::find(fitting->choice.begin(), fitting->choice.end(), no_weights.front()) != fitting->choice.end())
    std::fprintf(stderr, "warning: the net is frozen and untrained: replace model.weights = \"as-drawn\" by your own "
                         "weights, or by those of tools/fetch_weights\n");
  const auto lead =
      "#:schema ./scenario.schema.json\n" +
      comment_lines("The line above is for editors with Taplo or Even Better TOML: they complete and check keys after "
                    "you run `mneme schema > scenario.schema.json` in the folder of this file.") +
      comment_lines(fmt::format("Written by `mneme new {} {}{}`. Lines after # show the defaults.", arguments.names[0],
                                arguments.names[1], settings_text(arguments.settings)));
  const auto text = scenario_text(std::move(*fitting), lead);
  if (arguments.file.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_output(arguments.file, text);
  return exit_done;
}

} // namespace mneme
