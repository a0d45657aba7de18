// `mneme doctor --partition SCENARIO`: prints how many rows of each class each client holds.
#include "actors/run/client_class_counts.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unistd.h>
namespace mneme {
namespace {

constexpr std::size_t printed_clients_max = 64;
constexpr std::size_t numbered_classes_max = 16; // with more classes, a terminal shows only colors, no numbers

bool prints_colors() {
  const char* const terminal = std::getenv("TERM");
  const char* const refused = std::getenv("NO_COLOR");
  return ::isatty(::fileno(stdout)) != 0 && terminal && std::string_view(terminal) != "dumb" &&
         !(refused && *refused != '\0');
}

/// Background color of a cell: a scale of 24 grays of the 256-color palette, from dark (0) to bright (1).
std::string colored(const std::string& text, double share) {
  const auto level = static_cast<int>(std::lround(share * 23.0));
  return fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m", 232 + level, level < 12 ? 255 : 16, text);
}

/// Formats one line per client: its number, its rows of each class, and their sum.
std::string map_text(const client_class_counts& counts, bool colors) {
  std::int64_t most = 1;
  for (const auto& row : counts.rows)
    most = std::max(most, *std::max_element(row.begin(), row.end()));
  const bool numbers = !colors || counts.classes.size() <= numbered_classes_max;
  const auto width = numbers ? std::max<std::size_t>(fmt::format("{}", most).size(), 2) + 1 : 2;
  auto text = fmt::format("{:>8}", "client");
  for (const auto& name : counts.classes)
    text += numbers ? fmt::format("{:>{}}", printable(name).substr(0, width - 1), width) : std::string(width, ' ');
  text += fmt::format("{:>9}\n", "rows");
  for (std::size_t c = 0; c < std::min(counts.rows.size(), printed_clients_max); ++c) {
    const auto& row = counts.rows[c];
    text += fmt::format("{:>8}", c);
    for (const auto rows : row) {
      const auto cell = numbers ? fmt::format("{:>{}}", rows, width) : std::string(width, ' ');
      text += colors ? colored(cell, std::sqrt(static_cast<double>(rows) / static_cast<double>(most))) : cell;
    }
    text += fmt::format("{:>9}\n", std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  }
  if (counts.rows.size() > printed_clients_max)
    text += fmt::format("and {} more clients; --json prints all\n", counts.rows.size() - printed_clients_max);
  return text;
}

} // namespace

int inspect_partition(const doctor_arguments& arguments) {
  const auto settings = parse_settings(arguments.settings);
  if (!settings)
    return print_errors(settings.error());
  const auto read = read_scenario(arguments.partition, *settings);
  if (!read)
    return print_errors(read.error());
  const auto counts = count_client_classes(read->value);
  if (!counts)
    return print_errors(counts.error());
  if (arguments.json) {
    const nlohmann::ordered_json object{{"classes", counts->classes}, {"rows", counts->rows}};
    std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return exit_done;
  }
  std::printf("%s: training rows of each class (columns) that clients (lines) hold\n%s",
              printable(arguments.partition).c_str(), map_text(*counts, prints_colors()).c_str());
  return exit_done;
}

} // namespace mneme
