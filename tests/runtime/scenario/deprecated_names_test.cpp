#include "runtime/options/deprecated_names.hpp"
#include "tests/runtime/scenario/probe.hpp"
#include <algorithm>
#include <fmt/format.h>
using namespace mneme;
using namespace mneme::test;

namespace {

/// A key in its old and its new spelling, and the digest that the scenario had before the key was renamed.
struct renaming {
  std::string method{}, section{}, old_line{}, new_line{}, digest{};

  [[nodiscard]] std::string old_name() const { return section + "." + old_line.substr(0, old_line.find(' ')); }
  [[nodiscard]] std::string new_name() const { return section + "." + new_line.substr(0, new_line.find(' ')); }
};

const std::vector<renaming> renamings{
    {"fedavg", "tasks", "staying_share = 0.25", "keep_task_share = 0.25", "c3567e7adc8f02aca726296a68466654"},
    {"fedavg", "devices", "observing_costs = false", "observers_cost_time = false", "af745ae757e1ea66b78d2897b3e59884"},
    {"fedavg", "devices", "wire = \"int8\"", "transfer_dtype = \"int8\"", "0db0fb92484ccd85a7df0e3fb5c92ca6"},
    {"fedavg", "worker", "models_max = 3", "fused_clients_max = 3", "b167c2b32f279a865b0790e38e690dd8"},
    {"fedavg", "worker", "ahead_max = \"1 MiB\"", "lookahead_memory = \"1 MiB\"", "b167c2b32f279a865b0790e38e690dd8"},
    {"fedavg", "worker", "without_nodes = \"here\"", "no_nodes = \"local\"", "b167c2b32f279a865b0790e38e690dd8"},
    {"fedavg", "worker", "node_silence = \"1 s\"", "node_timeout = \"1 s\"", "b167c2b32f279a865b0790e38e690dd8"},
    {"fedavg", "strategy", "keep_share = 0.5", "old_model_share = 0.5", "4531e3652476b7e95fe3c3599502de18"},
    {"bic", "strategy", "corrects = \"all\"", "corrected_tasks = \"all\"", "1b84cd548f0eae9a166d7fe9a0099e80"},
    {"bic", "strategy", "tuned_on = \"trained\"", "correction_model = \"trained\"", "3ce028f4d55b87b8b8ab0f560dfb729c"},
    {"central-rehearsal", "strategy", "held_out = 0.25", "encoder_holdout_share = 0.25",
     "888f9e2c15bfa5f3bdf2f36e311ee69f"},
    {"central-rehearsal", "strategy", "noise_reading = \"b\"", "noise_scope = \"all\"",
     "a0e44e52e6fbf4a912accd7e61ba39fd"},
    {"fil-ver", "strategy", "noise_reading = \"b\"", "noise_scope = \"all\"", "315b3728c96014da2851a29be3163f6f"},
    {"er", "strategy", "replayed = 5", "replay_rows = 5", "80c6757f84288f3005a54bb57fbb94a3"},
    {"fed-et", "strategy", "reading = \"enhancer\"", "variant = \"enhancer\"", "6a77d4259d1fda6068dc6ad3368ce3cf"},
    {"fed-ewc", "strategy", "fisher_moves_statistics = true", "fisher_updates_batch_norm = true",
     "ee7d459cc75289405c5fef01643af944"},
    {"fil-ver", "strategy", "one_z_per_sample = false", "sample_once = false", "6b310d40b630591619b240072c7a872b"},
    {"lander", "strategy", "new_rows = \"drawn\"", "new_class_head = \"drawn\"", "d68f1f5e21ae36aee00cabcf2ca2de46"},
    {"mfcl", "strategy", "moves_twice = false", "batch_norm_updates_twice = false", "b221e806fbd0dd89abfe8087584d01cd"},
    {"osi-fl", "strategy", "p = 3", "retained_per_class = 3", "d78053114f3ce38dd5f08a3a8ab8cb0d"},
    {"osi-fl", "strategy", "moment = \"after\"", "scoring_model = \"after\"", "ff5d33f3702ec82852850100c1efe472"},
    {"pilora", "strategy", "late_schedule = true", "lagged_schedule = true", "23ab6b8c0f51bc57cc5de1b22c6efa5a"},
    {"ss-il", "strategy", "divides_rate = false", "rate_divided_by_task = false", "10fd5d933087901fc9bb183aa373a3d3"},
    {"stsa", "strategy", "secure_sum = true", "secure_aggregation = true", "fbf601f78cc0e8274b1e9353b80c7ad1"},
    {"glfc", "strategy", "rates = \"code-quirk\"", "rates = \"official\"", "947a638c227ee0f64e98b2ee9d2222df"},
    {"lga", "strategy", "rates = \"code-quirk\"", "rates = \"official\"", "83469935c5046a168c1cbc1e5556ef3f"},
};

/// The line is line 8, or line 9 in a section of its own.
std::string scenario_of(const renaming& renamed, const std::string& line) {
  return fmt::format("[data]\nname = \"synthetic\"\nshape = [3, 32, 32]\nclasses = 100\nrows = 1000\n[strategy]\n"
                     "name = \"{}\"\n{}{}\n",
                     renamed.method, renamed.section == "strategy" ? "" : "[" + renamed.section + "]\n", line);
}

} // namespace

TEST_CASE("an old key gives its value and digest, and a warning that names the new key", "[scenario]") {
  const scenario_folder folder;
  for (const auto& renamed : renamings) {
    CAPTURE(renamed.method, renamed.old_line);
    folder.write("old.toml", scenario_of(renamed, renamed.old_line));
    folder.write("new.toml", scenario_of(renamed, renamed.new_line));
    const auto old_spelling = folder.read("old.toml"), new_spelling = folder.read("new.toml");
    CHECK(scenario_digest(old_spelling.value) == renamed.digest);
    CHECK(scenario_digest(new_spelling.value) == renamed.digest);
    CHECK(resolved_text(old_spelling.value) == resolved_text(new_spelling.value));
    CHECK(resolved_text(new_spelling.value).find("\n" + renamed.new_line + "\n") != std::string::npos);
    const int line = renamed.section == "strategy" ? 8 : 9;
    const auto quoted = [](const std::string& text) { return text.substr(text.find(" = ") + 3); };
    std::string warnings;
    if (renamed.old_name() != renamed.new_name())
      warnings =
          fmt::format("old.toml:{}:1: error: {} is deprecated; use {}\n", line, renamed.old_name(), renamed.new_name());
    if (quoted(renamed.old_line) != quoted(renamed.new_line))
      warnings +=
          fmt::format("old.toml:{}:{}: error: {} = {} is deprecated; use {}\n", line, renamed.old_line.find(" = ") + 4,
                      renamed.new_name(), quoted(renamed.old_line), quoted(renamed.new_line));
    const auto given = folder.all(old_spelling.warnings);
    CHECK(given.find(warnings) != std::string::npos);
    CHECK(std::count(given.begin(), given.end(), '\n') - std::count(warnings.begin(), warnings.end(), '\n') ==
          std::ssize(new_spelling.warnings)); // only warnings about the value remain
  }
}

TEST_CASE("every renamed key is tested with its old name", "[scenario]") {
  for (const auto& entry : renamed_keys()) {
    if (entry.section == "data")
      continue; // below
    for (const auto& method : entry.methods.empty() ? std::vector<std::string_view>{"fedavg"} : entry.methods) {
      CAPTURE(entry.name, method);
      CHECK(std::any_of(renamings.begin(), renamings.end(), [&](const auto& renamed) {
        return renamed.method == method && renamed.new_name() == full_new_name(entry) &&
               renamed.old_name() == full_old_name(entry);
      }));
    }
  }
}

TEST_CASE("data.tokens is the old name of data.vocabulary_size", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[data]\nname = \"synthetic\"\nshape = [12]\ntokens = 30\n[model]\nname=\"lstm\"\n"
                         "[strategy]\nname=\"fedavg\"\n");
  const auto read = folder.read("a.toml");
  CHECK(read.value.data.tokens == 30);
  CHECK(scenario_digest(read.value) == "00a69ee0ba848093884b0f96ac861e05");
  CHECK(folder.all(read.warnings) == "a.toml:4:1: error: data.tokens is deprecated; use data.vocabulary_size\n");
}

TEST_CASE("both names of a key in one source are refused, naming both places", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[tasks]\nkeep_task_share = 0.5\nstaying_share = 0.25\n" + probe_sections);
  CHECK(folder.refusal("a.toml") == "a.toml:3:1: error: tasks.staying_share is the old name of tasks.keep_task_share, "
                                    "which is set at a.toml:2:1, too; remove one of them\n");
  folder.write("b.toml", probe_sections);
  CHECK(folder.refusal("b.toml", {{"tasks.staying_share", "0.5"}, {"tasks.keep_task_share", "0.5"}}) ==
        "--set: error: tasks.staying_share is the old name of tasks.keep_task_share, which is set at --set, too; "
        "remove one of them\n");
  // A file may override its base, and the command line both, as with one name.
  folder.write("base.toml", "[tasks]\nstaying_share = 0.25\n");
  folder.write("c.toml", "extends = \"base.toml\"\n[tasks]\nkeep_task_share = 0.5\n" + probe_sections);
  CHECK(folder.read("c.toml").value.tasks.keep_task_share == 0.5);
  CHECK(folder.read("c.toml", {{"tasks.staying_share", "0.75"}}).value.tasks.keep_task_share == 0.75);
}

TEST_CASE("a wrong value of an old key is an error at its place", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[tasks]\nstaying_share = 2.0\n" + probe_sections);
  CHECK(folder.refusal("a.toml") == "a.toml:2:17: error: tasks.keep_task_share = 2.0: expected a number in [0, 1]\n");
}

TEST_CASE("an old key is renamed only for the method that had it", "[scenario]") {
  const scenario_folder folder;
  folder.write("plus.toml", "[strategy]\nname = \"fed-il-plus\"\nreplayed = 7\n");
  const auto plus = folder.read("plus.toml");
  CHECK(plus.warnings.empty());
  CHECK(resolved_text(plus.value).find("\nreplayed = 7\n") != std::string::npos);
  folder.write("other.toml", "[strategy]\nname = \"fedavg\"\nreplayed = 7\n");
  CHECK(folder.refusal("other.toml").starts_with("other.toml:3:1: error: unknown key 'replayed' in [strategy]"));
  // A later layer replaces the method: its key has no effect, whatever its spelling.
  folder.write("er.toml", "[strategy]\nname = \"er\"\nreplayed = 7\n");
  CHECK(folder.all(folder.read("er.toml", {{"strategy.name", "fedavg"}}).warnings) ==
        "er.toml:3:1: error: strategy.replayed has no effect: only \"er\" reads it, and strategy.name is \"fedavg\"\n");
}
