#include "actors/run/report.hpp"
#include "actors/run/run_cost.hpp"
#include "actors/run/simulation.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

/// Formats FLOPs as "1.23 TFLOP".
std::string flops_text(double flops) {
  constexpr std::array units{"", "k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && flops >= 1000.0; ++unit)
    flops /= 1000.0;
  return fmt::format("{:.3g} {}FLOP", flops, units[unit]);
}

double virtual_seconds_of(const run_cost& cost) {
  return 1e-9 * static_cast<double>(cost.played.report.ended.time_since_epoch().count());
}

json cost_object(const std::string& file, const run_cost& cost) {
  const auto& report = cost.played.report;
  json parts = json::object();
  for (const auto& part : cost.memory)
    parts[part.name] = part.bytes;
  return {{"scenario", file},
          {"rounds", report.rounds},
          {"client_rounds", report.client_rounds},
          {"evaluations", cost.played.evaluations},
          {"virtual_seconds", virtual_seconds_of(cost)},
          {"train_flops", cost.train_flops},
          {"evaluate_flops", cost.evaluate_flops},
          {"upload_bytes", report.upload_bytes},
          {"download_bytes", report.download_bytes},
          {"exact", cost.played.exact},
          {"memory_bytes", cost.memory_bytes()},
          {"memory", std::move(parts)},
          {"memory_available_bytes", cost.room.bytes},
          {"flops_per_second", cost.flops_per_second},
          {"workers", cost.workers},
          {"seconds", cost.seconds}};
}

void print_cost(const run_cost& cost) {
  const auto& report = cost.played.report;
  std::string parts;
  for (const auto& part : cost.memory)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, bytes_text(part.bytes));
  const std::string plural = cost.workers == 1 ? "" : "s";
  print_columns(
      {{"rounds", fmt::format("{}, with {} client-rounds and {} evaluations in {} of virtual time", report.rounds,
                              report.client_rounds, cost.played.evaluations, elapsed_text(virtual_seconds_of(cost)))},
       {"FLOPs",
        fmt::format("{} to train, {} to evaluate", flops_text(cost.train_flops), flops_text(cost.evaluate_flops))},
       {"sent", fmt::format("{} up, {} down", bytes_text(static_cast<double>(report.upload_bytes)),
                            bytes_text(static_cast<double>(report.download_bytes)))},
       {"memory", fmt::format("about {} ({}); {} are {}", bytes_text(cost.memory_bytes()), parts,
                              bytes_text(static_cast<double>(cost.room.bytes)), cost.room.source)},
       {"time", fmt::format("about {} with {} worker{} at {}/s, the measured rate of products of the net's sizes; "
                            "elementwise operations are not included",
                            elapsed_text(cost.seconds), cost.workers, plural, flops_text(cost.flops_per_second))}});
  if (!cost.played.exact)
    print_columns(
        {{"not counted: the method's computations and traffic other than one training of the net per client-round",
          ""}});
}

/// Validates a scenario; prints its costs if requested. Returns all errors.
diagnostics checked(const std::string& file, const scenario& settings, const validate_arguments& arguments) {
  if (!arguments.cost) {
    diagnostics warnings;
    auto errors = check_against_data(settings, nullptr, &warnings);
    print_warnings(warnings, warning_style::text);
    if (errors.empty())
      std::printf("%s: ok\n", printable(file).c_str());
    return errors;
  }
  const auto cost = estimate_cost(settings);
  if (!cost)
    return cost.error();
  print_warnings(cost->warnings, arguments.json ? warning_style::json : warning_style::text);
  if (arguments.json) {
    std::printf("%s\n", cost_object(file, *cost).dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    return {};
  }
  std::printf("%s: ok\n", printable(file).c_str());
  print_cost(*cost);
  return {};
}

} // namespace

int validate_scenarios(const validate_arguments& arguments) {
  if (arguments.scenarios.empty())
    return bad_input("no scenario given; expected mneme validate SCENARIO...");
  const auto settings = parse_settings(arguments.settings);
  if (!settings)
    return print_errors(settings.error());
  int code = exit_done;
  for (const auto& file : arguments.scenarios) {
    const auto read = read_scenario(file, *settings);
    if (read)
      print_warnings(read->warnings, arguments.json ? warning_style::json : warning_style::text);
    if (const auto errors = read ? checked(file, read->value, arguments) : read.error(); !errors.empty())
      code = print_errors(errors);
    std::fflush(stdout);
  }
  return code;
}

} // namespace mneme
