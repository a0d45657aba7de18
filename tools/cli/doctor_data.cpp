#include "runtime/base/printable.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/doctor.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/cli/user_data.hpp"
#include "tools/study/stored_run.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

std::string kind_of_rows(const raw_data& data) {
  const auto& images = data.train.images;
  if (data.tokens > 0)
    return fmt::format("{} tokens below {}", images.size(3), data.tokens);
  const char* const type = images.scalar_type() == at::kByte ? "uint8" : "float32";
  if (images.size(1) == 1 && images.size(2) == 1)
    return fmt::format("{} numbers, {}", images.size(3), type);
  return fmt::format("{} x {} x {} (channels, height, width), {}", images.size(1), images.size(2), images.size(3),
                     type);
}

std::string name_of(const std::vector<std::string>& names, std::size_t number) {
  return number < names.size() ? names[number] : fmt::format("{}", number);
}

std::vector<std::int64_t> counts_of(const std::vector<std::int32_t>& numbers, std::size_t size) {
  std::vector<std::int64_t> counts(size, 0);
  for (const auto number : numbers)
    ++counts[static_cast<std::size_t>(number)];
  return counts;
}

/// Numbers of training and test rows for each name.
json counts_object(const std::vector<std::string>& names, std::size_t size, const std::vector<std::int32_t>& train,
                   const std::vector<std::int32_t>& test) {
  const auto trained = counts_of(train, size), tested = counts_of(test, size);
  auto object = json::array();
  for (std::size_t number = 0; number < size; ++number)
    object.push_back({{"name", name_of(names, number)}, {"train", trained[number]}, {"test", tested[number]}});
  return object;
}

json warnings_array(const diagnostics& warnings) {
  auto array = json::array();
  for (const auto& [where, text] : warnings)
    array.push_back({{"where", where}, {"text", text}});
  return array;
}

json object_of(const data_section& section, const raw_data& data) {
  const auto bytes = data.train.images.nbytes() + data.test.images.nbytes();
  const auto domains = data.train.domains.empty() ? 0 : data.domain_names.size();
  return {{"data", section.name},
          {"train_rows", data.train.size()},
          {"test_rows", data.test.size()},
          {"rows", kind_of_rows(data)},
          {"memory_bytes", bytes},
          {"test_share", section.test_share},
          {"content", hex_text(data_content(data))},
          {"classes", counts_object(data.class_names, static_cast<std::size_t>(data.classes), data.train.labels,
                                    data.test.labels)},
          {"domains", counts_object(data.domain_names, domains, data.train.domains, data.test.domains)}};
}

void print_counts(const char* title, const json& counts) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& entry : counts)
    lines.emplace_back(printable(entry["name"].get<std::string>()),
                       fmt::format("{} + {}", entry["train"].get<std::int64_t>(), entry["test"].get<std::int64_t>()));
  std::printf("\n%s (training + test rows):\n", title);
  print_columns(lines);
}

void print_data(const std::string& path, const data_section& section, const json& object, bool drawn) {
  const auto number = [&](const char* name) { return object[name].get<std::int64_t>(); };
  std::vector<std::pair<std::string, std::string>> lines{
      {"read as", fmt::format("data.name = \"{}\"", section.name)},
      {"rows",
       fmt::format("{} + {} of {}", number("train_rows"), number("test_rows"), object["rows"].get<std::string>())},
      {"classes", fmt::format("{}", object["classes"].size())},
      {"domains", object["domains"].empty() ? "one" : fmt::format("{}", object["domains"].size())},
      {"memory", size_text({number("memory_bytes")})},
      {"digest", object["content"].get<std::string>()}};
  if (drawn)
    lines.emplace_back("test part",
                       fmt::format("missing: a scenario needs data.test_share, which is {} here", section.test_share));
  std::printf("%s:\n", printable(path).c_str());
  print_columns(lines);
  print_counts("classes", object["classes"]);
  if (!object["domains"].empty())
    print_counts("domains", object["domains"]);
}

/// Returns warnings for settings that do not affect data.
diagnostics other_settings(const overrides& settings) {
  diagnostics others;
  for (const auto& [key, value] : settings)
    if (key != "seed" && !key.starts_with("data."))
      others.push_back({"--set", fmt::format("{} does not affect data; expected keys of [data], or seed", key)});
  return others;
}

/// Reads the data of a scenario, or user data at a path.
expected<user_data_report> inspect_path(const std::string& path, const overrides& settings) {
  if (std::filesystem::path(path).extension() == ".toml") {
    auto read = read_scenario(path, settings);
    if (!read)
      return tl::unexpected(read.error());
    const auto& data = read->value.data;
    return user_data_report{.section = data,
                            .rows = load_data(data, read->value.data_seed()),
                            .warnings = settings.empty() ? diagnostics{} : std::move(read->warnings)};
  }
  if (is_run_folder(path))
    return failed(path, "is the folder of a run, not a data set; use mneme report to view it, mneme verify to "
                        "reproduce it, or mneme doctor with its scenario.toml to describe its data");
  if (const auto section = section_of_path(path))
    return inspect_data_section(*section, settings);
  return failed(path, "is neither an image folder nor a data file; expected a folder, a file with the extension .npz, "
                      ".safetensors, .npy or .csv, or a scenario (.toml)");
}

} // namespace

int inspect_data(const doctor_arguments& arguments) {
  const auto settings = parse_settings(arguments.settings);
  if (!settings)
    return print_errors(settings.error());
  if (const auto others = other_settings(*settings); !others.empty())
    return print_errors(others);
  int code = exit_done;
  for (const auto& path : arguments.data) {
    const auto look = inspect_path(path, *settings);
    if (look)
      print_warnings(look->warnings, warning_style::text);
    if (!look || !look->rows) {
      code = print_errors(look ? look->rows.error() : look.error());
      continue;
    }
    auto object = object_of(look->section, *look->rows);
    const auto warnings = data_warnings(look->section);
    if (arguments.json) {
      object["warnings"] = warnings_array(warnings);
      std::printf("%s\n", object.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
      continue;
    }
    print_warnings(warnings, warning_style::text);
    print_data(path, look->section, object, look->has_no_test_part);
  }
  return code;
}

} // namespace mneme
