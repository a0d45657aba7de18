#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/unit_text.hpp"
#include "tests/runtime/scenario/probe.hpp"
#include <sstream>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Entry of broken_scenarios.txt.
struct broken {
  std::string name{}, toml{}, findings{};
};

std::vector<broken> broken_scenarios() {
  std::istringstream in(content_of(MNEME_SOURCE_DIR "/tests/runtime/scenario/broken_scenarios.txt"));
  std::vector<broken> cases;
  bool in_toml = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      cases.push_back({.name = line.substr(4)});
      in_toml = true;
    } else if (line == "---") {
      in_toml = false;
    } else if (!cases.empty() && (in_toml || !line.empty())) {
      (in_toml ? cases.back().toml : cases.back().findings) += line + "\n";
    }
  }
  return cases;
}

std::string with_sections(std::string toml, bool method) {
  if (method && toml.find("[strategy]") == std::string::npos)
    toml += "[strategy]\nname = \"probe-method\"\n";
  if (toml.find("[model]") == std::string::npos)
    toml += "[model]\nname = \"probe-net\"\n";
  return toml;
}

template <class Entries>
std::string expected_names(const Entries& entries) {
  return joined(
      entries, [](const auto& entry) { return quote_text(entry.name); }, " | ");
}

} // namespace

TEST_CASE("errors of a scenario have their location and the expected value", "[scenario]") {
  const auto cases = broken_scenarios();
  REQUIRE(cases.size() >= 110);
  for (const auto& example : cases) {
    DYNAMIC_SECTION(example.name) {
      const scenario_folder folder;
      folder.write("broken.toml", with_sections(example.toml, example.name != "no method"));
      CHECK(folder.refusal("broken.toml") == example.findings);
    }
  }
}

TEST_CASE("invalid UTF-8 is refused with its location", "[scenario]") {
  const scenario_folder folder;
  folder.write("broken.toml", "title = \"\xff\xfe\"\n" + probe_sections);
  CHECK(folder.refusal("broken.toml") ==
        "broken.toml:1:9: error: not valid TOML: Encountered invalid utf-8 sequence\n");
}

TEST_CASE("an unknown name is refused with the nearest registered one and the full list", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[strategy]\nname = \"probe-metod\"\nmu = 1\n[model]\nname = \"prob-net\"\nhidden = [1]\n"
                         "[data]\nname = \"mnits\"\n");
  CHECK(folder.refusal("a.toml") == "a.toml:2:8: error: strategy.name = \"probe-metod\": expected " +
                                        expected_names(strategies()) + "; did you mean \"probe-method\"?\n" +
                                        "a.toml:5:8: error: model.name = \"prob-net\": expected " +
                                        expected_names(models()) + "; did you mean \"probe-net\"?\n" +
                                        "a.toml:8:8: error: data.name = \"mnits\": expected " +
                                        expected_names(data_sources()) + "; did you mean \"mnist\"?\n");
}

TEST_CASE("a missing scenario and a folder are refused by name", "[scenario]") {
  const scenario_folder folder;
  folder.write("quickstart.toml", probe_sections);
  CHECK(folder.refusal("quikstart.toml") == "quikstart.toml: error: no such file; did you mean 'quickstart.toml'?\n");
  CHECK(folder.refusal("something else") == "something else: error: no such file\n");
  std::filesystem::create_directory(folder.path() / "folder.toml");
  CHECK(folder.refusal("folder.toml") ==
        "folder.toml: error: is a folder; expected an ordinary file, a scenario in TOML\n");
  folder.write("huge.toml", std::string(17 << 20, '#'));
  CHECK(folder.refusal("huge.toml") == "huge.toml: error: larger than 16 MiB; expected a scenario file in TOML\n");
}

TEST_CASE("setting a key that the chosen kind does not read gives a warning", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[rounds]\nlate = \"keep\"\n[partition]\nkind = \"iid\"\nbeta = 0.3\nclass_share = 0.6\n"
                         "[tasks]\nkind = \"single\"\ncount = 7\n[training]\noptimizer = \"adam\"\nmomentum = 0.9\n" +
                             probe_sections);
  const auto read = folder.read("a.toml");
  CHECK(folder.all(read.warnings) == // class_share is set to its default, so it has no effect
        "a.toml:2:8: error: rounds.late has no effect: only rounds with a deadline read it\n"
        "a.toml:5:8: error: partition.beta has no effect: only partition.kind = \"dirichlet\" and "
        "\"dirichlet-capped\" read it\n"
        "a.toml:9:9: error: tasks.count has no effect: tasks.kind = \"single\" has one task\n"
        "a.toml:12:12: error: training.momentum has no effect: only training.optimizer = \"sgd\" read it\n");
  CHECK(read.value.tasks.count == 1);
}

TEST_CASE("keys of images have no effect on token rows, and keys of idx files only on idx data", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml",
               "[data]\nname = \"shakespeare\"\ntransposed = true\nnormalize = \"unit\"\nside = 64\n" + probe_sections);
  CHECK(folder.all(folder.read("a.toml").warnings) ==
        "a.toml:3:14: error: data.transposed has no effect: only data sets in idx files read it\n"
        "a.toml:4:13: error: data.normalize has no effect: only images read it\n"
        "a.toml:5:8: error: data.side has no effect: only data sets in image folders read it\n");
  folder.write("b.toml", "[data]\nname = \"digits\"\ntransposed = true\nnormalize = \"unit\"\n" + probe_sections);
  CHECK(folder.read("b.toml").warnings.empty());
}

TEST_CASE("settings that move pixels are refused for token rows, and domains for data without domains", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[data]\nname = \"shakespeare\"\n[training]\naugment = \"crop-flip\"\n" + probe_sections);
  CHECK(folder.refusal("a.toml") == "a.toml:4:11: error: training.augment: expected \"none\", because the rows of "
                                    "\"shakespeare\" are tokens, but augmentation moves pixels\n");
  folder.write("b.toml", "[data]\nname = \"mnist\"\n[tasks]\nkind = \"domain-incremental\"\ncount = 2\n"
                         "transform = \"domains\"\n" +
                             probe_sections);
  CHECK(folder.refusal("b.toml") ==
        "b.toml:6:13: error: tasks.transform = \"domains\": \"mnist\" has no domains; expected another transform, or a "
        "data set with domains: arrays, csv, digits, folder, nico-common, nico-unique, open-image, pacs, "
        "shakespeare-roles\n");
}

TEST_CASE("a run in which no client ever responds gives a warning", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[devices]\ndropout = 1\n" + probe_sections);
  CHECK(folder.all(folder.read("a.toml").warnings) ==
        "a.toml:2:11: error: devices.dropout = 1.0: no upload will ever arrive, so the model never changes\n");
}
