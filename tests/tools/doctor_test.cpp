#include "tests/support/scratch.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/doctor.hpp"
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

doctor_report report_with(bool second_holds) {
  return {.groups = {{"memory", {{"memory", "1 GiB"}, {"place", "a\x1b[2J"}}}},
          .bits = {{.name = "places", .details = "3 nets"},
                   {.name = "company", .details = "vit: other bits", .holds = second_holds}}};
}

/// Output and exit code of `mneme doctor ARGUMENTS` with these environment variables.
std::pair<int, std::string> doctor(const std::string& arguments, const std::string& variables = "") {
  auto* pipe = ::popen((variables + " '" MNEME_PROGRAM "' doctor " + arguments).c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  std::array<char, 4096> buffer{};
  while (const auto bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    out.append(buffer.data(), bytes);
  return {WEXITSTATUS(::pclose(pipe)), out};
}

std::string fact(const machine_info& facts, const std::string& name) {
  for (const auto& [known, value] : facts)
    if (known == name)
      return value;
  return "no such fact";
}

} // namespace

TEST_CASE("a machine with equal bits gives exit code 0, one with other bits 1", "[doctor]") {
  CHECK(exit_code_of(report_with(true)) == exit_done);
  CHECK(exit_code_of(report_with(false)) == exit_failed);
  CHECK(text_of(report_with(true)) ==
        "memory\n  memory  1 GiB\n  place   a?[2J\n\n"
        "equal bits\n  places   equal bits: 3 nets\n  company  equal bits: vit: other bits\n\n"
        "OK: on this machine a scenario has one digest for any number of threads.\n");
  CHECK_THAT(text_of(report_with(false)), ContainsSubstring("  company  OTHER BITS: vit: other bits\n") &&
                                              ContainsSubstring("Digests of a scenario may differ"));
}

TEST_CASE("the report as JSON is one object", "[doctor]") {
  const auto object = nlohmann::json::parse(json_of(report_with(false)));
  CHECK(object["memory"]["memory"] == "1 GiB");
  CHECK(object["healthy"] == false);
  CHECK(object["equal_bits"][1] ==
        nlohmann::json{{"name", "company"}, {"holds", false}, {"details", "vit: other bits"}});
  CHECK(nlohmann::json::parse(json_of(report_with(true)))["healthy"] == true);
}

TEST_CASE("threads, variables and data sets are those of the process", "[doctor]") {
  CHECK_THAT(fact(thread_facts(), "threads of an operation"), ContainsSubstring("1 (LibTorch's default: "));
  ::setenv("MKL_CBWR", "AVX2", 1);
  CHECK_THAT(fact(processor_info(), "variables that choose kernels"), ContainsSubstring("MKL_CBWR=AVX2"));
  ::unsetenv("MKL_CBWR");
  CHECK(fact(data_facts(), "synthetic") == "generated from the seed");
  CHECK(fact(library_info(), "CAF") == "0.18.7");
}

TEST_CASE("mneme doctor finds the data sets below MNEME_DATA and reports this machine as healthy", "[doctor]") {
  const scratch_folder folder;
  const auto lists = folder.path() / "tiny-imagenet-200";
  std::filesystem::create_directories(lists / "val");
  write_file(lists / "wnids.txt", "n00000001\n");
  write_file(lists / "val" / "val_annotations.txt", "");
  const auto [code, text] = doctor("--json", "MNEME_DATA='" + folder.path().string() + "' MNEME_KERNELS=plain");
  CHECK(code == 0);
  const auto object = nlohmann::json::parse(text);
  CHECK(object["data sets"]["tiny-imagenet"] == lists.string());
  CHECK(object["data sets"]["pacs"] == "not found");
  CHECK(object["processor"]["mneme's kernels"] == "none beyond the compiler's");
  CHECK(object["equal_bits"].size() == 3);
  CHECK(object["healthy"] == true);
  const auto [plain_code, plain] = doctor("");
  CHECK(plain_code == 0);
  CHECK_THAT(plain, ContainsSubstring("OK: on this machine"));
}
