#include "actors/run/simulation.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/messages.hpp"
namespace mneme {

int validate_scenarios(const std::vector<std::string>& scenarios) {
  if (scenarios.empty())
    return bad_input("no scenario given; expected mneme validate SCENARIO...");
  int code = exit_done;
  for (const auto& file : scenarios) {
    const auto read = read_scenario(file, {});
    if (read)
      print_warnings(read->warnings, warning_style::text);
    const auto wrong = read ? check_against_data(read->value) : read.error();
    if (wrong.empty())
      std::printf("%s: ok\n", printable(file).c_str());
    else
      code = print_errors(wrong);
    std::fflush(stdout);
  }
  return code;
}

} // namespace mneme
