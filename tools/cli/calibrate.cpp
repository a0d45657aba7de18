#include "actors/run/calibration.hpp"
#include "actors/run/machine_info.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/scenario/device_profiles.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/run_options.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

std::string processor_name() {
  for (const auto& [name, value] : processor_info())
    if (name == "processor")
      return printable(value);
  return "this machine";
}

std::string text_of(const calibration& measured, const scenario& settings) {
  auto profile = measured.profile;
  profile.title = processor_name() + (measured.device == "cpu" ? ", one core" : ", " + measured.device);
  profile.sources = {fmt::format("measured by mneme {} calibrate with {}: median of at least {} jobs of each size",
                                 MNEME_VERSION, settings.name, measured.repeats)};
  const auto us = [](double seconds) { return 1e6 * seconds; };
  return fmt::format(
             "# A row takes {:.4g} us: forward {:.4g}, backward {:.4g}, optimizer {:.4g}; of {:.4g} operations.\n"
             "# `devices.profiles = [{{ file = \"...\" }}]` draws clients from this profile.\n",
             us(measured.train_row_s), us(measured.forward_row_s), us(measured.backward_row_s),
             us(measured.optimizer_row_s), measured.train_row_flops) +
         profile_text(profile);
}

} // namespace

int calibrate_scenario(const calibrate_arguments& arguments) {
  if (arguments.scenarios.size() != 1)
    return bad_input(
        fmt::format("{} scenarios given; expected mneme calibrate SCENARIO -o FILE", arguments.scenarios.size()));
  const auto settings = parse_settings(arguments.settings);
  if (!settings)
    return print_errors(settings.error());
  const auto read = read_scenario(arguments.scenarios.front(), *settings);
  if (!read)
    return print_errors(read.error());
  print_warnings(read->warnings, warning_style::text);
  const auto measured = calibrate(read->value, arguments.seconds);
  if (!measured)
    return print_errors(measured.error());
  print_warnings(measured->warnings, warning_style::text);
  const auto text = text_of(*measured, read->value);
  if (arguments.file.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_output(arguments.file, text);
  return exit_done;
}

} // namespace mneme
