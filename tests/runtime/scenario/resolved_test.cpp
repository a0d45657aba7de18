#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/sections.hpp"
#include "tests/runtime/scenario/probe.hpp"
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Another valid value for every key that has no test of its own.
const std::vector<std::pair<std::string, std::string>> other_values{
    {"seed", "2"},
    {"data.train_rows", "100"},
    {"data.test_rows", "100"},
    {"data.train_per_class", "10"},
    {"data.test_per_class", "10"},
    {"data.normalize", "unit"},
    {"data.transposed", "true"},
    {"data.name", "synthetic"},
    {"data.seed", "4"},
    {"data.shape", "[3, 8, 8]"},
    {"data.classes", "20"},
    {"data.rows", "99"},
    {"data.vocabulary_size", "7"},
    {"data.side", "64"},
    {"data.resize", "32"},
    {"data.crop", "8"},
    {"tasks.kind", "single"},
    {"tasks.count", "2"},
    {"tasks.first_classes", "2"},
    {"tasks.sizes", "[2, 1, 1, 1, 5]"},
    {"tasks.domain_order", "[\"photo\", 2]"},
    {"tasks.classes", "5"},
    {"tasks.class_order", "seeded"},
    {"tasks.classes_per_task", "3"},
    {"tasks.keep_task_share", "0.25"},
    {"partition.kind", "shards"},
    {"partition.beta", "0.25"},
    {"partition.class_share", "0.5"},
    {"partition.shards_per_client", "3"},
    {"partition.rows_per_client", "51"},
    {"partition.seed", "per-run"},
    {"partition.over", "enrolled"},
    {"partition.public_share", "0.2"},
    {"tasks.transition", "staggered"},
    {"tasks.transition_spread", "1 s"},
    {"clients.count", "30"},
    {"clients.memory_limit", "1 kB"},
    {"clients.attack", "noise"},
    {"clients.attackers", "0.2"},
    {"clients.attack_scale", "2"},
    {"uploads.clip_norm", "1"},
    {"uploads.noise_multiplier", "0.5"},
    {"uploads.noise", "client"},
    {"uploads.delta", "1e-6"},
    {"uploads.top_k", "0.5"},
    {"uploads.quantise", "8"},
    {"uploads.rounding", "nearest"},
    {"uploads.error_feedback", "true"},
    {"uploads.secure_aggregation", "masked"},
    {"aggregation.rule", "median"},
    {"aggregation.trim", "0.1"},
    {"aggregation.byzantine", "1"},
    {"aggregation.selected", "2"},
    {"enrolment.kind", "growing"},
    {"enrolment.table", "[\"AAAAA\"]"},
    {"enrolment.initial", "9"},
    {"enrolment.added_per_task", "1"},
    {"enrolment.arrival_mean", "1 s"},
    {"enrolment.lifetime_mean", "1 s"},
    {"enrolment.absence_mean", "1 s"},
    {"enrolment.rejoin", "without-memory"},
    {"rounds.per_task", "11"},
    {"rounds.cohort", "0"},
    {"rounds.deadline", "90 s"},
    {"rounds.late", "keep"},
    {"rounds.mode", "async"},
    {"rounds.aggregation", "fedasync"},
    {"rounds.buffer", "11"},
    {"rounds.concurrency", "9"},
    {"rounds.staleness", "hinge"},
    {"rounds.staleness_exponent", "1"},
    {"rounds.staleness_bound", "5"},
    {"rounds.mixing", "0.5"},
    {"rounds.server_learning_rate", "0.5"},
    {"devices.rows_per_second", "10"},
    {"devices.uplink_mbit", "{ median = 1, sigma = 0 }"},
    {"devices.downlink_mbit", "0"},
    {"devices.latency", "51 ms"},
    {"devices.dropout", "0.125"},
    {"devices.transfer_dtype", "int8"},
    {"devices.proxy_uplink_mbit", "10"},
    {"devices.proxy_downlink_mbit", "{ median = 1, sigma = 0 }"},
    {"devices.observers_cost_time", "false"},
    {"devices.availability", "diurnal"},
    {"devices.availability_period", "1 h"},
    {"devices.profiles", "[{ name = \"snapdragon-888\", link = \"lte\", share = 0.5 }, { name = \"raspberry-pi-5\" }]"},
    {"devices.trace_end", "repeat"},
    {"devices.trace_period", "1 h"},
    {"devices.server_uplink_mbit", "100"},
    {"devices.server_downlink_mbit", "200"},
    {"model.name", "probe-stem"},
    {"model.trainable", "head"},
    {"model.frozen", "[\"fc1.weight\"]"},
    {"model.module_output", "scores"},
    {"model.module_training", "false"},
    {"model.module_fused", "false"},
    {"model.native_code", "true"},
    {"model.hidden", "[200]"},
    {"model.probed", "true"},
    {"training.optimizer", "adam"},
    {"training.epochs", "0"},
    {"training.batch", "0"},
    {"training.learning_rate", "0.1"},
    {"training.schedule", "cosine"},
    {"training.milestones", "[3, 4]"},
    {"training.factor", "0.5"},
    {"training.momentum", "0.9"},
    {"training.weight_decay", "5e-4"},
    {"training.clip_norm", "1"},
    {"training.augment", "crop-flip"},
    {"training.label_smoothing", "0.1"},
    {"training.drop_last", "true"},
    {"strategy.preset", "small"},
    {"strategy.weighting", "uniform"},
    {"strategy.old_model_share", "0.5"},
    {"strategy.oracle", "true"},
    {"strategy.mu", "0.02"},
    {"strategy.rule", "median"},
    {"strategy.layers", "[]"},
    {"strategy.pause", "1 ns"},
    {"strategy.buffer", "1 kB"},
    {"evaluation.every", "0"},
    {"evaluation.mask", "all"},
    {"evaluation.targets", "[50, 75.5]"},
    {"evaluation.fairness", "true"},
    {"evaluation.personal", "local"},
    {"evaluation.personal_rows", "classes"},
    {"evaluation.personal_share", "0.5"},
    {"evaluation.personal_epochs", "2"},
    {"evaluation.models", "tasks"},
};

overrides possible_with(const std::pair<std::string, std::string>& entry) {
  overrides over{entry};
  if (entry.first == "enrolment.kind")
    over.emplace_back("enrolment.added_per_task", "2");
  if (entry.first == "tasks.first_classes")
    over.emplace_back("tasks.count", "5");
  if (entry.first == "clients.attack")
    over.emplace_back("clients.attackers", "0.1");
  if (entry.first == "uploads.noise_multiplier")
    over.insert(over.end(), {{"uploads.clip_norm", "2"}, {"strategy.weighting", "uniform"}});
  return over;
}

void check_round_trip(const scenario_folder& folder, const scenario& settings) {
  const auto text = resolved_text(settings);
  folder.write("again/resolved.toml", text);
  const auto again = folder.read("again/resolved.toml");
  CHECK(resolved_text(again.value) == text);
  CHECK(scenario_digest(again.value) == scenario_digest(settings));
}

} // namespace

TEST_CASE("a resolved scenario reads back to the same text and digest", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections);
  check_round_trip(folder, folder.read("a.toml").value);
  for (const auto& entry : other_values) {
    CAPTURE(entry.first);
    check_round_trip(folder, folder.read("a.toml", possible_with(entry)).value);
  }
}

TEST_CASE("every key but title, workers, checkpoints and data.root changes the digest", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", probe_sections);
  std::set<std::string> digests{scenario_digest(folder.read("a.toml").value)};
  for (const auto& entry : other_values) {
    CAPTURE(entry.first);
    CHECK(digests.insert(scenario_digest(folder.read("a.toml", possible_with(entry)).value)).second);
  }
}

TEST_CASE("the digest tests cover every key", "[scenario]") {
  // Keys with a single legal value, file keys, and keys without effect on a run.
  std::set<std::string> known{"title", "data.root", "tasks.transform", "partition.file", "devices.availability_file",
                              "devices.capacity_file", "devices.link_file", "model.weights", "model.seed_weights",
                              "model.module", "model.backbone", "strategy.name",
                              // Location of user data; their content is hashed.
                              "data.file", "data.folder",
                              // For user data only.
                              "data.test_share", "data.channels", "data.layout", "data.label_column",
                              "data.split_column", "data.domain_column", "data.ignore_columns"};
  for (const auto& [name, value] : other_values)
    known.insert(name);
  scenario defaults;
  for (const auto& section : sections_of(defaults))
    for (const auto& key : section.keys.all())
      if (section.name != "worker" && section.name != "checkpoint") {
        CAPTURE(section.name, key.name);
        CHECK(known.contains(section.name.empty() ? key.name : section.name + "." + key.name));
      }
}

TEST_CASE("title, workers, checkpoints, data.root and the order of keys do not change the digest", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml",
               "title = \"a\"\nseed = 5\n[clients]\ncount = 30\n[rounds]\ncohort = 3\nper_task = 2\n" + probe_sections);
  folder.write(
      "b.toml",
      "seed = 5\n[model]\nname = \"probe-net\"\n[rounds]\nper_task = 2\ncohort = 3\n[worker]\ncount = 2\n"
      "device = \"cpu\"\nfused_clients_max = 3\nshards = 4\nlookahead_memory = \"1 MiB\"\n[data]\nroot = \".\"\n"
      "[checkpoint]\nevery = 3\nforce = true\nkeep = 5\n"
      "[clients]\ncount = 30\n[strategy]\nname = \"probe-method\"\n");
  CHECK(scenario_digest(folder.read("a.toml").value) == scenario_digest(folder.read("b.toml").value));
  CHECK(scenario_digest(folder.read("a.toml").value).size() == 32);
}

TEST_CASE("a path counts in the digest by the content of its file", "[scenario]") {
  const scenario_folder folder;
  folder.write("x/split.csv", "client,row\n0,1\n");
  folder.write("y/other.csv", "client,row\n0,1\n");
  folder.write("a.toml", "[partition]\nkind = \"file\"\nfile = \"x/split.csv\"\n" + probe_sections);
  const auto first = folder.read("a.toml").value;
  const auto digest = scenario_digest(first);
  const auto elsewhere = (folder.path() / "y/other.csv").string();
  CHECK(scenario_digest(folder.read("a.toml", {{"partition.file", elsewhere}}).value) == digest);
  folder.write("x/split.csv", "client,row\n0,2\n");
  CHECK(scenario_digest(first) != digest);
  check_round_trip(folder, first);
}

TEST_CASE("strings with quotes, line breaks and accents survive the resolved scenario", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "title = \"a \\\"b\\\" \\\\ \\n \\u0001 \xc3\xa4\"\n" + probe_sections);
  const auto read = folder.read("a.toml");
  CHECK(read.value.title == "a \"b\" \\ \n \x01 \xc3\xa4");
  check_round_trip(folder, read.value);
}

TEST_CASE("device values keep the form in which they were given", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[clients]\ncount = 3\n[devices]\nrows_per_second = 100\nuplink_mbit = [1, 2.5, 0]\n"
                         "[devices.downlink_mbit]\nmedian = 7\n" +
                             probe_sections);
  const auto text = resolved_text(folder.read("a.toml").value);
  CHECK(text.find("rows_per_second = 100.0\nuplink_mbit = [1.0, 2.5, 0.0]\n"
                  "downlink_mbit = { median = 7.0, sigma = 0.0 }\nproxy_uplink_mbit = ") != std::string::npos);
}

TEST_CASE("reading a resolved scenario gives no new warnings", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[tasks]\nkind = \"single\"\n[partition]\nkind = \"iid\"\n" + probe_sections);
  for (const char* mode : {"sync", "async"}) {
    folder.write("b.toml", resolved_text(folder.read("a.toml", {{"rounds.mode", mode}, {"clients.count", "5"}}).value));
    CHECK(folder.all(folder.read("b.toml").warnings).empty());
  }
}

TEST_CASE("the device \"cuda\" becomes the first one, also in the resolved scenario", "[scenario]") {
  const scenario_folder folder;
  folder.write("a.toml", "[worker]\ndevice = \"cuda\"\n" + probe_sections);
  const auto read = folder.read("a.toml");
  CHECK(read.value.worker.device == "cuda:0");
  CHECK(resolved_text(read.value).find("\ndevice = \"cuda:0\"\n") != std::string::npos);
}

TEST_CASE("a projection file's width is used in the resolved scenario", "[scenario]") {
  const scenario_folder folder;
  const std::string header = R"({"W_R":{"dtype":"F32","shape":[3,7],"data_offsets":[0,84]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  folder.write("projection.safetensors", bytes + header + std::string(84, '\0'));
  const std::string stsa = "[strategy]\nname = \"stsa\"\nprojection_file = \"projection.safetensors\"\n";
  folder.write("a.toml", stsa);
  const auto read = folder.read("a.toml");
  CHECK(resolved_text(read.value).find("\nprojection_width = 7\n") != std::string::npos);
  CHECK(read.warnings.empty());
  folder.write("b.toml", stsa + "projection_width = 7\n"); // as in a resolved scenario
  folder.write("c.toml", stsa + "projection_width = 12\n");
  const auto same = folder.read("b.toml"), other = folder.read("c.toml");
  CHECK(same.warnings.empty());
  CHECK(folder.all(other.warnings) ==
        "c.toml:4:20: error: strategy.projection_width = 12 has no effect: a file sets it to 7\n");
  CHECK(scenario_digest(same.value) == scenario_digest(read.value));
  CHECK(scenario_digest(other.value) == scenario_digest(read.value));
  folder.write("projection.safetensors", "no such format"); // loading the run reports it
  CHECK(resolved_text(folder.read("a.toml").value).find("\nprojection_width = 5000\n") != std::string::npos);
}
