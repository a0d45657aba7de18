#include "runtime/method/strategy.hpp"
#include "runtime/scenario/sections.hpp"
#include "tests/support/scratch.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/forked_tasks.hpp"
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
using namespace mneme;
using namespace mneme::test;

namespace {

struct ended {
  int code = -1;
  std::string out{}, errors{};
};

/// Runs the program in `folder` by a shell that first executes `before`.
ended shell_in(const std::filesystem::path& folder, const std::string& arguments, const std::string& before) {
  const auto errors = folder / ".errors";
  const auto command = "cd '" + folder.string() + "' && " + before + " && '" MNEME_PROGRAM "' " + arguments + " 2>'" +
                       errors.string() + "'";
  auto* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  ended result;
  std::array<char, 4096> buffer{};
  while (const auto bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.out.append(buffer.data(), bytes);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.errors = content_of(errors);
  return result;
}

/// Runs the command line in `folder` in a fork of this process, because a new process takes 0.3 s to load LibTorch.
ended fork_in(const std::filesystem::path& folder, const std::string& arguments) {
  std::istringstream text("mneme " + arguments);
  const std::vector<std::string> words(std::istream_iterator<std::string>(text), {});
  std::vector<const char*> pointers;
  for (const auto& word : words)
    pointers.push_back(word.c_str());
  forked_tasks command;
  command.start(0, [&] {
    if (::chdir(folder.c_str()) != 0 || !std::freopen(".out", "w", stdout))
      return -1;
    return run_command_line(static_cast<int>(pointers.size()), pointers.data());
  });
  const auto end = command.next_end(std::chrono::minutes(10));
  REQUIRE(end);
  return {.code = end->code, .out = content_of(folder / ".out"), .errors = end->errors};
}

/// Runs the program in `folder`: by a shell that first executes `before`, or if the arguments need a shell.
ended mneme_in(const std::filesystem::path& folder, const std::string& arguments, const std::string& before = "") {
  const bool needs_shell = !before.empty() || arguments.find_first_of("'<>&$") != std::string::npos;
  return needs_shell ? shell_in(folder, arguments, before.empty() ? "true" : before) : fork_in(folder, arguments);
}

const std::string tiny = R"(title = "Tiny"
[data]
name = "synthetic"
shape = [4]
classes = 4
rows = 80
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = 1
[model]
name = "linear"
[strategy]
name = "fedavg"
)";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a failed write at the end of a run is reported", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  // All events of a short run are written at its end. They exceed the file size limit.
  const auto result = mneme_in(here.path(),
                               "run a.toml --quiet --trace --out x --set checkpoint.every=0 --set clients.count=200 "
                               "--set rounds.cohort=200 --set data.rows=800",
                               "trap '' XFSZ && ulimit -f 32");
  CAPTURE(result.errors);
  CHECK(result.code == 1);
  CHECK(contains(result.errors, "events.csv"));
  CHECK(contains(content_of(here.path() / "x" / "summary.json"), "\"status\": \"failed\""));
}

TEST_CASE("lost output is an error, and closed standard streams overwrite no file", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  for (const char* arguments : {"list", "validate a.toml", "help", "--version", "run a.toml --json"}) {
    CAPTURE(arguments);
    const auto result = mneme_in(here.path(), std::string(arguments) + " >/dev/full");
    CHECK(result.code == 1);
    CHECK(contains(result.errors, "error: cannot write all of the output"));
  }
  CHECK(mneme_in(here.path(), "run a.toml --out whole").code == 0);
  CHECK(mneme_in(here.path(), "run a.toml --out closed <&- >&-").code == 0);
  const auto lines = content_of(here.path() / "closed" / "metrics.jsonl");
  CHECK_FALSE(lines.empty());
  CHECK(lines == content_of(here.path() / "whole" / "metrics.jsonl"));
}

TEST_CASE("a tensor that exceeds the memory is an error without an address in memory", "[cli]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer needs more addresses than the limit leaves");
#endif
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto result = mneme_in(here.path(), "run a.toml --set data.shape=[900] --set data.rows=1_000_000_000",
                               "ulimit -v 64000000"); // KiB; the rows would take 900 GB
  CHECK(result.code == 1);
  CHECK(contains(result.errors, "can't allocate memory"));
  CHECK_FALSE(contains(result.errors, "0x"));
  CHECK_FALSE(contains(result.errors, "frame #"));
}

TEST_CASE("a population that exceeds the memory is an error, and the run can be resumed elsewhere", "[cli]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer needs more addresses than the limit leaves");
#endif
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  // The limit is reached in operator new, not in a tensor: 400 MB for the clients, and 2.4 GB for their availability.
  const auto result = mneme_in(here.path(),
                               "run a.toml --quiet --out x --set clients.count=100000000 --set "
                               "partition.kind=sampled --set devices.availability=diurnal",
                               "ulimit -v 2000000");
  CHECK(result.code == 1);
  CHECK(contains(result.errors, "error: out of memory; use fewer "));
  const auto again = mneme_in(here.path(), "resume x --quiet", "ulimit -v 2000000");
  CHECK(again.code == 1);
  CHECK(contains(again.errors, "error: out of memory; use fewer "));
}

TEST_CASE("control characters in a title do not reach the terminal", "[cli]") {
  const scratch_folder here;
  std::filesystem::create_directory(here.path() / "scenarios");
  write_file(here.path() / "scenarios" / "a.toml", "title = \"\\u001b[2J\"\n" + tiny.substr(tiny.find('[')));
  for (const char* arguments : {"list scenarios", "run scenarios/a.toml", "run scenarios/a.toml --set no.such=1"}) {
    const auto result = mneme_in(here.path(), arguments);
    CHECK_FALSE(contains(result.out + result.errors, "\x1b"));
  }
}

TEST_CASE("a scenario that is a pipe, a device or a loop of links is refused by name", "[cli]") {
  const scratch_folder here;
  std::filesystem::create_symlink("b.toml", here.path() / "a.toml");
  std::filesystem::create_symlink("a.toml", here.path() / "b.toml");
  write_file(here.path() / "c.toml", "extends = \"a.toml\"\n");
  REQUIRE(::mkfifo((here.path() / "fifo.toml").c_str(), 0600) == 0);
  for (const std::string name : {"a.toml", "fifo.toml", "/dev/zero", "c.toml"}) {
    CAPTURE(name);
    const auto result = mneme_in(here.path(), "validate " + name);
    CHECK(result.code == 2);
    CHECK(contains(result.errors, name == "c.toml" ? "a.toml" : name));
  }
}

TEST_CASE("bad usage gives one error and exit code 2", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto refused = [&](const std::string& arguments, const std::string& error) {
    CAPTURE(arguments);
    const auto result = mneme_in(here.path(), arguments);
    CHECK(result.code == 2);
    CHECK(result.errors == "error: " + error + "\n");
    CHECK(result.out.empty());
  };
  refused("", "no command given; expected one of run, resume, verify, diff, node, sweep, compare, report, benchmark, "
              "validate, calibrate, list, new, schema, completion, doctor, help");
  refused("rnu a.toml", "unknown command 'rnu'; did you mean 'run'?");
  refused("resum runs/x", "unknown command 'resum'; did you mean 'resume'?");
  refused("resume", "no run given; expected mneme resume RUN_DIR, as in mneme resume "
                    "runs/quickstart-fedavg-s1-01234567");
  refused("resume a b", "more than one run given; expected mneme resume RUN_DIR, as in mneme resume "
                        "runs/quickstart-fedavg-s1-01234567");
  refused("resume runs/x", "'runs/x' is not a folder; expected the folder of a run, as in mneme resume runs/NAME");
  refused("resume . --threads 0", "--threads = '0': expected an integer in [1, 4096]");
  refused("run", "no scenario given; expected mneme run SCENARIO..., as in mneme run scenarios/quickstart.toml");
  refused("run a.toml --sed seed=1", "unknown option '--sed' of `mneme run`; did you mean --set?");
  refused("run a.toml --tread=1", "unknown option '--tread' of `mneme run`; did you mean --threads?");
  refused("run a.toml --set seed", "--set 'seed': expected KEY=VALUE, as in --set rounds.cohort=5");
  refused("run a.toml --threads 0", "--threads = '0': expected an integer in [1, 4096]");
  refused("run a.toml --threads two", "--threads = 'two': expected an integer in [1, 4096]");
  refused("help run list", "unexpected argument 'list'; expected mneme help TOPIC");
  refused("run a.toml --seeds 1,x",
          "--seeds = '1,x': expected integers >= 0 with commas between them, as in 1,2,3 or 1-5");
  refused("run a.toml --seeds 1,1",
          "--seeds = '1,1': seed 1 occurs twice; expected different seeds, as in 1,2,3 or 1-5");
  refused("run a.toml --out .", "--out '.' already exists, and a run never overwrites another; choose a new folder");
  refused("validate", "no scenario given; expected mneme validate SCENARIO...");
  refused("list stratgies", "unknown list 'stratgies'; did you mean 'strategies'?");
  refused("list --markdown",
          "--markdown prints one table; expected mneme list --markdown strategies, models or datasets");
  refused("help fedvag", "unknown topic 'fedvag'; did you mean 'fedavg'?");
  refused("help rounds.cohrt", "unknown topic 'rounds.cohrt'; did you mean 'rounds.cohort'?");
  refused("help memry", "unknown topic 'memry'; did you mean 'memory'?");
  refused("help qqqqqqqqqq", "unknown topic 'qqqqqqqqqq'; expected a command, a section, a strategy, a model or a key; "
                             "see mneme help and mneme list");
  refused("a.toml", "unknown command 'a.toml'; did you mean mneme run a.toml?");
  refused("version", "unknown command 'version'; did you mean mneme --version?");
  refused("sweep a.toml --over rounds.cohort=1,2 --set rounds.cohort=2",
          "the key 'rounds.cohort' is both set to 2 and varied; expected only one of the two");
  CHECK(mneme_in(here.path(), "run a.toml --quiet --json").code == 2);
  CHECK(mneme_in(here.path(), "run a.toml --out").code == 2);
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs"));
}

TEST_CASE("a broken scenario gives exit code 2, and no folder is written", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "good.toml", tiny);
  write_file(here.path() / "bad.toml", tiny + "[rounds]\n");
  const auto result = mneme_in(here.path(), "run good.toml bad.toml --set rounds.cohort=9 --out all");
  CHECK(result.code == 2);
  CHECK(result.errors == "--set: error: rounds.cohort = 9: expected at most clients.count = 4, or 0 for all\n"
                         "bad.toml:17:1: error: not valid TOML: in a table header: cannot redefine existing table "
                         "'rounds'; give each key and section once\n");
  CHECK_FALSE(std::filesystem::exists(here.path() / "all"));
}

TEST_CASE("validate prints ok, or all errors of data and scenario", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "good.toml", tiny);
  write_file(here.path() / "bad.toml", "[rounds]\ncohrt = 1\n");
  const auto result = mneme_in(here.path(), "validate good.toml bad.toml");
  CHECK(result.code == 2);
  CHECK(result.out == "good.toml: ok\n");
  CHECK(result.errors == "bad.toml: error: no [strategy] section; add one, as in [strategy] and name = \"fedavg\"\n"
                         "bad.toml:2:1: error: unknown key 'cohrt' in [rounds]; did you mean 'cohort'?\n");
  CHECK(mneme_in(here.path(), "validate good.toml").code == 0);
}

TEST_CASE("missing data are an error at the line that names them", "[cli]") {
  const scratch_folder here;
  const auto error_text = [&](const std::string& data) {
    write_file(here.path() / "a.toml", "[strategy]\nname = \"fedavg\"\n[data]\n" + data);
    return mneme_in(here.path(), "validate a.toml", "export MNEME_DATA=/nowhere").errors;
  };
  CHECK(
      contains(error_text("name = \"arrays\"\n"), "a.toml:4:8: error: data.file names no file; expected data.file = "));
  CHECK(contains(error_text("name = \"csv\"\n"), "a.toml:4:8: error: data.file names no file; expected data.file = "));
  CHECK(
      contains(error_text("name = \"cifar10\"\n"), "a.toml:4:8: error: data set 'cifar10': the files were not found"));
}

TEST_CASE("invalid UTF-8 never reaches the scenario of a run, which could not be read again", "[cli]") {
  const scratch_folder here;
  const auto folder = here.path() / "caf\xE9";
  std::filesystem::create_directory(folder);
  write_file(folder / "a.toml", tiny);
  write_file(folder / "p.csv", "client,row\n0,0\n1,1\n");
  const auto title = mneme_in(folder, "run a.toml --out x --set title=caf\xE9");
  CHECK(title.code == 2);
  CHECK(title.errors ==
        "--set: error: title = \"caf?\": expected UTF-8, since scenarios are UTF-8 text; use another name\n");
  const auto path = mneme_in(folder, "run a.toml --out x --set partition.kind=file --set partition.file=p.csv");
  CHECK(path.code == 2);
  CHECK(contains(path.errors, "/caf?/p.csv\": expected UTF-8, since scenarios are UTF-8 text; use another name\n"));
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_CASE("validate accepts --set as run does", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  CHECK(mneme_in(here.path(), "validate a.toml --set ' rounds.cohort = 2 '").code == 0);
  CHECK(mneme_in(here.path(), "validate a.toml --set rounds.cohort=2").code == 0);
  const auto result = mneme_in(here.path(), "validate a.toml --set rounds.cohort=9");
  CHECK(result.code == 2);
  CHECK(result.errors == "--set: error: rounds.cohort = 9: expected at most clients.count = 4, or 0 for all\n");
  CHECK(mneme_in(here.path(), "validate a.toml --set seed").errors ==
        "error: --set 'seed': expected KEY=VALUE, as in --set rounds.cohort=5\n");
}

TEST_CASE("validate --cost prints computation and traffic as text and as JSON", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto text = mneme_in(here.path(), "validate a.toml --cost");
  CHECK(text.code == 0);
  CHECK(text.out.starts_with("a.toml: ok\n  rounds  2, with 8 client-rounds and 2 evaluations in "));
  // 20 weights of 4 bytes, 2 rounds of 4 clients. All 80 rows are used once, 40 of them with 2 classes and 40 with 4.
  // With 4 features and 2 classes, a row takes 2 * 4 * 2 operations forward and as many backward. Evaluations have 40,
  // then 80 test rows.
  const auto object = mneme_in(here.path(), "validate a.toml --cost --json");
  CHECK(object.code == 0);
  CHECK(contains(object.out, "\"client_rounds\":8,"));
  CHECK(contains(object.out, "\"train_flops\":3840.0,")); // 40 * 32 + 40 * 64
  CHECK(contains(object.out, "\"upload_bytes\":640,\"download_bytes\":640,\"exact\":true,"));
  CHECK(mneme_in(here.path(), "validate a.toml --json").code == 2);
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs"));
}

TEST_CASE("a cohort that exceeds the memory is refused with an estimate before anything is loaded", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const std::string many = "a.toml --set clients.count=100000000 --set rounds.cohort=0 --set partition.kind=sampled "
                           "--set data.rows=1000000000 --set data.shape=[900]"; // would take 900 GB
  for (const std::string command : {"run ", "validate ", "validate --cost ", "sweep --dry-run "}) {
    CAPTURE(command);
    const auto result = mneme_in(here.path(), command + many);
    CHECK(result.code == 2);
    CHECK(contains(result.errors, "error: clients.count = 100000000 with rounds.cohort = 0: needs more memory "
                                  "than the "));
    CHECK(contains(result.errors, ": clients about 381 MiB, clients in flight about "));
  }
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs"));
}

TEST_CASE("seeds run one after another into separate folders", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  const auto result = mneme_in(here.path(), "run a.toml --seeds 3,4 --out both --quiet --threads 1");
  CHECK(result.code == 0);
  CHECK(result.errors.empty());
  CHECK(contains(content_of(here.path() / "both/s3/scenario.toml"), "\nseed = 3\n"));
  CHECK(contains(content_of(here.path() / "both/s4/summary.json"), "\"done\""));
}

TEST_CASE("several scenarios below one --out have folders with their names", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  write_file(here.path() / "b.toml", tiny);
  CHECK(mneme_in(here.path(), "run a.toml b.toml --out both --quiet --threads 1").code == 0);
  CHECK(std::filesystem::exists(here.path() / "both/a/summary.json"));
  CHECK(std::filesystem::exists(here.path() / "both/b/summary.json"));
}

TEST_CASE("a resolved scenario runs again to the same digest", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  REQUIRE(mneme_in(here.path(), "run a.toml --out one --quiet --threads 1").code == 0);
  const auto again = mneme_in(here.path(), "run one/scenario.toml --out two --quiet --threads 2");
  CHECK(again.code == 0);
  CHECK(again.errors.empty()); // no warnings
  const auto digest = [&](const char* run) {
    const auto text = content_of(here.path() / run / "summary.json");
    const auto at = text.find("\"run_digest\"");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(digest("one").size() > 32);
  CHECK(digest("one") == digest("two"));
}

TEST_CASE("with --json every line of stdout is an object, also warnings", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny + "[partition]\nkind = \"iid\"\nbeta = 0.1\n");
  const auto result = mneme_in(here.path(), "run a.toml --json --threads 1");
  CHECK(result.code == 0);
  CHECK(result.errors.empty());
  CHECK(result.out.starts_with(
      "{\"event\":\"warning\",\"where\":\"a.toml:19:8\",\"text\":\"partition.beta has no effect"));
  for (std::size_t from = 0; from < result.out.size(); from = result.out.find('\n', from) + 1)
    CHECK(result.out[from] == '{');
}

TEST_CASE("help names every key of every section, model and strategy", "[cli]") {
  const scratch_folder here;
  scenario defaults;
  for (const auto& section : sections_of(defaults)) {
    const auto text = mneme_in(here.path(), "help " + section.name).out;
    for (const auto& key : section.keys.all()) {
      CAPTURE(section.name, key.name);
      CHECK(contains(text, "  " + key.name + " = " + key.default_text + "\n      " + expected_text(key) + ". " +
                               key.meaning));
    }
  }
  for (const auto& entry : strategies()) {
    const auto text = mneme_in(here.path(), "help " + entry.name).out;
    const auto method = entry.make();
    key_table own;
    method->keys(own);
    CHECK(contains(text, entry.summary));
    for (const auto& key : own.all())
      CHECK(contains(text, "  " + key.name + " = " + key.default_text));
  }
  CHECK(contains(mneme_in(here.path(), "help run").out, "--seeds"));
  CHECK(contains(mneme_in(here.path(), "help").out, "\n  validate"));
  CHECK(contains(mneme_in(here.path(), "help cohort").out, "  rounds.cohort = 10\n"));
  CHECK(contains(mneme_in(here.path(), "help resume").out, "RUN_DIR"));
  const auto memory = mneme_in(here.path(), "help strategy.memory").out; // each meaning once
  CHECK(contains(memory, "  strategy.memory = 2000\n"));
  CHECK(contains(memory, "      A key of strategy glfc, lga.\n"));
  CHECK(contains(mneme_in(here.path(), "help depth").out, "      A key of model clip, vit.\n"));
  CHECK(contains(mneme_in(here.path(), "help layers").out, "  model.layers = 2\n"));
}

TEST_CASE("list prints the registered names, and scenarios with their titles", "[cli]") {
  const scratch_folder here;
  std::filesystem::create_directories(here.path() / "scenarios/sub");
  write_file(here.path() / "scenarios/sub/b.toml", tiny);
  write_file(here.path() / "scenarios/a.toml", "title = \"First\"\n");
  CHECK(mneme_in(here.path(), "list scenarios").out == "  scenarios/a.toml      First\n  scenarios/sub/b.toml  Tiny\n");
  const auto text = mneme_in(here.path(), "list").out;
  for (const auto* name :
       {"strategies:", "fedavg", "models:", "mlp", "datasets:", "synthetic", "partitions:", "dirichlet"})
    CHECK(contains(text, name));
  const auto table = mneme_in(here.path(), "list --markdown strategies").out;
  CHECK(table.starts_with("| name | description | own keys |\n|---|---|---|\n| `"));
  CHECK(contains(table, "\n| `fedavg` |"));
  CHECK(contains(table, "`mu = 0.01`"));
}

TEST_CASE("the version is the project's", "[cli]") {
  const scratch_folder here;
  const auto result = mneme_in(here.path(), "--version");
  CHECK(result.code == 0);
  CHECK(result.out == "mneme " MNEME_VERSION "\n");
}

TEST_CASE("an interrupt ends a run with exit code 130 and keeps its records", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  // exec keeps the shell's process id, so $! is the program's.
  const auto script = "(cd '" + here.path().string() +
                      "' && exec '" MNEME_PROGRAM "' run a.toml --set rounds.per_task=1000000"
                      " --set evaluation.every=1 --threads 1 --out r >log 2>&1) & pid=$!; i=0; "
                      "while [ ! -s '" +
                      here.path().string() +
                      "/r/metrics.jsonl' ] && [ $i -lt 300 ]; do sleep 0.1; "
                      "i=$((i+1)); done; kill -INT $pid; wait $pid";
  // A shell's background job ignores SIGINT unless the program installs a handler.
  const int status = std::system(script.c_str());
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(contains(content_of(here.path() / "r/summary.json"), "\"interrupted\""));
}

TEST_CASE("a folder or file with the name of a command is used as a folder or file", "[cli]") {
  const scratch_folder here;
  write_file(here.path() / "a.toml", tiny);
  write_file(here.path() / "table.csv", "x,label\n1,0\n2,1\n3,0\n4,1\n");
  REQUIRE(mneme_in(here.path(), "run a.toml --quiet --out base").code == 0);
  for (const std::string name : {"sweep", "new", "help"}) {
    CAPTURE(name);
    std::filesystem::rename(here.path() / "base", here.path() / name);
    for (const auto& arguments : {"compare " + name, "compare --metric final_accuracy " + name, "compare -- " + name,
                                  "report " + name + " -o page.html", "verify " + name + " --quiet", "resume " + name,
                                  "diff " + name + " " + name, "list runs --in " + name}) {
      CAPTURE(arguments);
      const auto result = mneme_in(here.path(), arguments);
      CAPTURE(result.errors);
      CHECK(result.code == 0);
    }
    std::filesystem::rename(here.path() / name, here.path() / "base");
    std::filesystem::copy_file(here.path() / "table.csv", here.path() / (name + ".csv"));
    std::filesystem::copy_file(here.path() / "a.toml", here.path() / name);
    for (const auto& arguments :
         {"validate " + name, "validate " + name + " a.toml", "run a.toml --quiet --out r-" + name,
          "sweep " + name + " --dry-run", "calibrate " + name + " --seconds 0.1 -o p-" + name}) {
      CAPTURE(arguments);
      const auto result = mneme_in(here.path(), arguments);
      CAPTURE(result.errors);
      CHECK(result.code == 0);
    }
    std::filesystem::remove(here.path() / name);
    const auto missing = mneme_in(here.path(), "doctor " + name);
    CHECK(missing.code == 2);
    CHECK(contains(missing.errors, name));
  }
}

TEST_CASE("arguments after a command belong to that command", "[cli]") {
  const scratch_folder here;
  for (const auto* arguments :
       {"new sweep run", "schema run", "completion bash run", "list models run", "help run sweep"}) {
    CAPTURE(arguments);
    const auto result = mneme_in(here.path(), arguments);
    CAPTURE(result.errors);
    CHECK(result.code == 2);
    CHECK_FALSE(contains(result.errors, "unknown command"));
    CHECK_FALSE(contains(result.errors, "SCENARIO"));
  }
}
