#include "runtime/options/unit_text.hpp"
#include "tests/runtime/scenario/probe.hpp"
#include <sys/resource.h>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("a scenario overrides its base, and the command line overrides both", "[scenario]") {
  const scenario_folder folder;
  folder.write("base/world.toml",
               "title = \"base\"\nseed = 3\n[clients]\ncount = 40\n[rounds]\ncohort = 4\nper_task = 2\n");
  folder.write("paper/a.toml",
               "extends = \"../base/world.toml\"\ntitle = \"a\"\n[rounds]\ncohort = 5\n" + probe_sections);
  const auto read = folder.read("paper/a.toml", {{"rounds.cohort", "6"}});
  CHECK(read.value.title == "a");
  CHECK(read.value.name == "a");
  CHECK(read.value.seed == 3);
  CHECK(read.value.clients.count == 40);
  CHECK(read.value.rounds.cohort == 6);
  CHECK(read.value.rounds.per_task == 2);
  CHECK(folder.relative(read.value.where("clients.count")) == "base/world.toml:4:9");
  CHECK(read.value.where("rounds.cohort") == "--set");
  CHECK(folder.relative(read.value.where("rounds.late")) == "paper/a.toml"); // set by the base only
}

TEST_CASE("a base that two bases extend is read once, with the lowest precedence", "[scenario]") {
  const scenario_folder folder;
  folder.write("root.toml", "[clients]\ncount = 10\n[rounds]\nper_task = 1\n");
  folder.write("left.toml", "extends = \"root.toml\"\n[clients]\ncount = 20\n");
  folder.write("right.toml", "extends = \"root.toml\"\n[rounds]\nper_task = 3\n");
  folder.write("a.toml", "extends = [\"left.toml\", \"right.toml\"]\n" + probe_sections);
  const auto read = folder.read("a.toml");
  CHECK(read.value.clients.count == 20); // reading root.toml a second time would make it 10
  CHECK(read.value.rounds.per_task == 3);
}

TEST_CASE("characters that toml++ does not locate are refused with their location", "[scenario]") {
  const scenario_folder folder;
  for (const char* const letter : {"\u02CD", "\u00E9", "\u2CF0"}) {
    folder.write("a.toml", std::string("[clients]\ncount ") + letter + " = 4\n");
    CHECK(folder.refusal("a.toml").starts_with("a.toml:2:7: error: not valid TOML: "));
  }
}

TEST_CASE("scenarios that extend each other are refused, and the cycle is named", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "extends = \"b.toml\"\n" + probe_sections);
  folder.write("b.toml", "[clients]\ncount = 4\n\n[rounds]\n");
  folder.write("c.toml", "extends = \"./c.toml\"\n" + probe_sections);
  CHECK(folder.refusal("a.toml").empty());
  folder.write("b.toml", "extends = \"sub/../a.toml\"\n");
  CHECK(folder.refusal("a.toml") ==
        "b.toml:1:11: error: extends = \"sub/../a.toml\": a cycle: a.toml -> b.toml -> a.toml; "
        "a scenario cannot extend itself\n");
  CHECK(folder.refusal("c.toml") ==
        "c.toml:1:11: error: extends = \"./c.toml\": a cycle: c.toml -> c.toml; a scenario cannot extend itself\n");
}

TEST_CASE("a missing base is refused at the line that names it", "[scenario]") {
  const scenario_folder folder;
  folder.write("base/mnist.toml", "[clients]\ncount = 4\n");
  folder.write("a.toml", "extends = \"base/mnits.toml\"\n" + probe_sections);
  folder.write("b.toml", "extends = 5\n" + probe_sections);
  CHECK(folder.refusal("a.toml") ==
        "a.toml:1:11: error: extends = \"base/mnits.toml\": no such file 'base/mnits.toml'; "
        "did you mean 'base/mnist.toml'?\n");
  CHECK(folder.refusal("b.toml") ==
        "b.toml:1:11: error: extends: expected a path of a scenario file, as in \"../base/x.toml\"\n");
}

TEST_CASE("errors of a base and of the file that extends it are reported together, the base first", "[scenario]") {
  const scenario_folder folder;
  folder.write("base.toml", "[clients]\ncount = 0\n[data\n");
  folder.write("keys.toml", "[clients]\ncont = 0\n");
  folder.write("a.toml", "extends = [\"keys.toml\", \"base.toml\"]\n[rounds]\nper_task = 0\n" + probe_sections);
  CHECK(folder.refusal("a.toml") ==
        "keys.toml:2:1: error: unknown key 'cont' in [clients]; did you mean 'count'?\n"
        "base.toml:3:6: error: not valid TOML: in a table header: expected ']', saw '\\n'\n"
        "a.toml:3:12: error: rounds.per_task = 0: expected an integer in [1, 1000000000]\n");
}

TEST_CASE("paths are relative to the file that sets them", "[scenario]") {
  const scenario_folder folder;
  folder.write("base/split.csv", "client,row\n0,1\n");
  folder.write("base/b.toml", "[partition]\nkind = \"file\"\nfile = \"split.csv\"\n");
  folder.write("paper/a.toml", "extends = \"../base/b.toml\"\n" + probe_sections);
  CHECK(folder.read("paper/a.toml").value.partition.file == folder.path() / "base/split.csv");
  const auto here = std::filesystem::current_path();
  CHECK(folder.read("paper/a.toml", {{"data.root", "."}}).value.data.root == here / "");
}

TEST_CASE("an override accepts TOML values and treats other text as a string", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections);
  const auto read = folder.read("a.toml", {{"title", "a b = c"},
                                           {"tasks.class_order", "[1, 0, 2, 3]"},
                                           {"rounds.deadline", "30 s"},
                                           {"training.optimizer", "\"adam\""},
                                           {"training.learning_rate", "1e-3"},
                                           {"devices.uplink_mbit", "{ median = 3, sigma = 0 }"},
                                           {"strategy.mu", "2"},
                                           {"strategy.mu", "3"}});
  CHECK(read.value.title == "a b = c");
  CHECK(std::get<1>(read.value.tasks.class_order) == std::vector<std::int64_t>{1, 0, 2, 3});
  CHECK(read.value.rounds.deadline == std::chrono::seconds(30));
  CHECK(read.value.training.optimizer == optimizer_kind::adam);
  CHECK(read.value.training.learning_rate == 1e-3);
  CHECK(std::get<log_normal>(read.value.devices.uplink_mbit) == log_normal{3.0, 0.0});
  CHECK(resolved_text(read.value).find("\nmu = 3.0\n") != std::string::npos);
}

TEST_CASE("an invalid override is refused like a file", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections);
  const auto refused = [&](const char* key, const char* value) { return folder.refusal("a.toml", {{key, value}}); };
  CHECK(refused("rounds.cohrt", "5") == "--set: error: unknown key 'cohrt' in [rounds]; did you mean 'cohort'?\n");
  CHECK(refused("cohort", "5") ==
        "--set: error: unknown key 'cohort' outside all sections; did you mean [rounds] cohort?\n");
  CHECK(refused("round.cohort", "5") == "--set: error: unknown section [round]; did you mean [rounds]?\n");
  CHECK(refused("rounds", "5") == "--set: error: rounds: expected one section, as in [rounds], found an integer\n");
  CHECK(refused("training.epochs", "two") ==
        "--set: error: training.epochs = \"two\": expected an integer in [0, 1000000], found a string\n");
  CHECK(refused("rounds.cohort", "50") ==
        "--set: error: rounds.cohort = 50: expected at most clients.count = 20, or 0 for all\n");
  CHECK(refused("title", "1\nseed = 5").empty()); // two lines are a string, not two keys
  CHECK(refused("extends", "b.toml") == "--set: error: extends = \"b.toml\": expected in a scenario file only\n");
}

TEST_CASE("a preset sets defaults in any section, and explicit keys take precedence", "[scenario]") {
  const scenario_folder folder;
  folder.write("base.toml", "[training]\nepochs = 7\n");
  folder.write("a.toml", "extends = \"base.toml\"\n[strategy]\nname = \"probe-method\"\npreset = \"small\"\n"
                         "[model]\nname = \"probe-net\"\n");
  const auto read = folder.read("a.toml");
  CHECK(read.value.clients.count == 8);
  CHECK(read.value.rounds.cohort == 8); // the minimum of 10 and the preset's number of clients
  CHECK(read.value.training.epochs == 7);
  CHECK(resolved_text(read.value).find("\nmu = 0.5\n") != std::string::npos);
  CHECK_FALSE(read.value.key_places.contains("clients.count"));
  CHECK(folder.read("a.toml", {{"clients.count", "9"}}).value.clients.count == 9);
  CHECK(folder.read("a.toml", {{"strategy.preset", ""}}).value.clients.count == 20);
}

TEST_CASE("a preset's value for a key that is not read gives no warning", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[partition]\nkind = \"iid\"\n[strategy]\nname = \"probe-method\"\npreset = \"small\"\n"
                         "[model]\nname = \"probe-net\"\n");
  CHECK(folder.all(folder.read("a.toml").warnings).empty());
}

TEST_CASE("keys of a model that a later layer replaces give a warning", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections + "hidden = [7]\nweights = \"\"\n");
  const auto read = folder.read("a.toml", {{"model.name", "probe-stem"}});
  CHECK(
      folder.all(read.warnings) ==
      "a.toml:6:1: error: model.hidden has no effect: only \"probe-net\" reads it, and model.name is \"probe-stem\"\n");
  CHECK(resolved_text(read.value).find("stem = \"cifar\"") != std::string::npos);
}

TEST_CASE("the default cohort is the smaller of ten and the number of clients", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections);
  CHECK(folder.read("a.toml").value.rounds.cohort == 10);
  CHECK(folder.read("a.toml", {{"clients.count", "6"}}).value.rounds.cohort == 6);
  CHECK(folder.read("a.toml", {{"rounds.cohort", "0"}}).value.rounds.cohort == 0);
  CHECK(folder.read("a.toml", {{"clients.count", "500"}, {"rounds.cohort", "300"}}).value.rounds.cohort == 300);
}

TEST_CASE("a key with too many parts is refused before its tables are created", "[scenario]") {
  const scenario_folder folder;
  std::string parts = "a";
  for (int i = 0; i < 224'000; ++i)
    parts += ".a";
  folder.write("key.toml", "seed = 1\n" + parts + " = 1\n" + probe_sections);
  CHECK(folder.refusal("key.toml").starts_with("key.toml:2:16: error: a key with more than 8 parts"));
  folder.write("section.toml", "[" + parts + "]\n" + probe_sections);
  CHECK(folder.refusal("section.toml").starts_with("section.toml:1:17: error: a key with more than 8 parts"));
  folder.write("good.toml", "title = \"" + parts + "\" # " + parts + "\n" + probe_sections);
  CHECK(folder.refusal("good.toml").empty());
  CHECK(folder.read("good.toml", {{"title", "{" + parts + " = 1}"}}).value.title == "{" + parts + " = 1}");
}

TEST_CASE("a long chain of bases takes memory in proportion to its text, and an endless one is refused", "[scenario]") {
  const scenario_folder folder;
  for (int i = 0; i < 1'200; ++i)
    folder.write(std::to_string(i) + ".toml", "extends = \"" + std::to_string(i + 1) + ".toml\"\n");
  folder.write("1200.toml", probe_sections);
  CHECK(folder.refusal("0.toml").find("the chain of `extends` exceeds 1000 files before") != std::string::npos);
  CHECK(folder.refusal("800.toml").empty());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  CHECK(usage.ru_maxrss < 4'000'000); // KiB; 16 MiB per file would exceed it
}
