#include "tools/cli/doctor.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/messages.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

bool is_healthy(const doctor_report& report) {
  return std::all_of(report.bits.begin(), report.bits.end(),
                     [](const reproducibility_check& finding) { return finding.holds; });
}

/// Formats facts as two columns below a title; the first column is as wide as its longest entry.
std::string facts_text(const std::string& title, const machine_info& facts) {
  std::size_t width = 0;
  for (const auto& [name, value] : facts)
    width = std::max(width, name.size());
  auto text = title + "\n";
  for (const auto& [name, value] : facts)
    text += fmt::format("  {:<{}}  {}\n", name, width, printable(value));
  return text + "\n";
}

} // namespace

doctor_report examine_machine() {
  doctor_report report;
  report.groups = {{"processor", processor_info()}, {"libraries", library_info()},    {"threads", thread_facts()},
                   {"memory", memory_facts()},      {"devices", accelerator_facts()}, {"data sets", data_facts()}};
  report.bits = check_reproducibility(small_nets());
  return report;
}

std::string text_of(const doctor_report& report) {
  std::string text;
  for (const auto& [title, facts] : report.groups)
    text += facts_text(title, facts);
  machine_info answers;
  for (const auto& finding : report.bits)
    answers.emplace_back(finding.name, (finding.holds ? "equal bits: " : "OTHER BITS: ") + finding.details);
  text += facts_text("equal bits", answers);
  return text + (is_healthy(report)
                     ? "OK: on this machine a scenario has one digest for any number of threads.\n"
                     : "Digests of a scenario may differ between runs on this machine. Set MKL_CBWR=AVX2 to make MKL's "
                       "products reproducible, and please report the output above.\n");
}

std::string json_of(const doctor_report& report) {
  nlohmann::ordered_json object;
  for (const auto& [title, facts] : report.groups)
    for (const auto& [name, value] : facts)
      object[title][name] = value;
  for (const auto& finding : report.bits)
    object["equal_bits"].push_back({{"name", finding.name}, {"holds", finding.holds}, {"details", finding.details}});
  object["healthy"] = is_healthy(report);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int exit_code_of(const doctor_report& report) { return is_healthy(report) ? exit_done : exit_failed; }

int doctor(const doctor_arguments& arguments) {
  if (!arguments.partition.empty())
    return inspect_partition(arguments);
  if (!arguments.data.empty())
    return inspect_data(arguments);
  return arguments.settings.empty()
             ? run_doctor(arguments.json)
             : print_errors({{"--set", "changes data or a partition; expected DATA, or --partition SCENARIO"}});
}

int run_doctor(bool json) {
  const auto report = examine_machine();
  std::fputs((json ? json_of(report) : text_of(report)).c_str(), stdout);
  return exit_code_of(report);
}

} // namespace mneme
