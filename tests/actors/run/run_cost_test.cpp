// Estimated cost of runs, compared with the measured cost.
#include "actors/run/run_cost.hpp"
#include "tests/support/run.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/generators/catch_generators.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

const std::string world = R"([data]
name = "synthetic"
shape = [6]
classes = 4
rows = 120
[tasks]
count = 2
[clients]
count = 12
[rounds]
per_task = 3
cohort = 5
[model]
name = "mlp"
hidden = [5]
)";

run_cost cost_of_toml(const std::string& toml, const overrides& over) {
  const scratch_folder folder;
  write_file(folder.path() / "test.toml", toml);
  const auto read = read_scenario(folder.path() / "test.toml", over);
  REQUIRE(read);
  auto cost = estimate_cost(read->value);
  if (!cost)
    FAIL(diagnostic_text(cost.error().front()));
  return std::move(*cost);
}

double virtual_seconds_of(const run_report& report) {
  return 1e-9 * static_cast<double>(report.ended.time_since_epoch().count());
}

} // namespace

TEST_CASE("dry runs have the traffic, counts and virtual duration of the real runs") {
  const auto& over =
      GENERATE(overrides{{"strategy.name", "fedavg"}},
               overrides{{"strategy.name", "fed-lwf"}, {"devices.transfer_dtype", "int8"}},
               overrides{{"strategy.name", "fedprox"}, {"model.trainable", "head"}, {"model.weights", "as-drawn"}},
               overrides{{"strategy.name", "fedavg"}, {"devices.dropout", "0.3"}, {"rounds.deadline", "100 ms"}},
               overrides{{"strategy.name", "fedavg"}, {"rounds.mode", "async"}, {"devices.dropout", "0.2"}},
               overrides{{"strategy.name", "joint"}, {"devices.availability", "diurnal"}, {"evaluation.every", "2"}},
               overrides{{"strategy.name", "fedavg"},
                         {"enrolment.kind", "random"},
                         {"enrolment.arrival_mean", "1 s"},
                         {"enrolment.absence_mean", "2 s"},
                         {"enrolment.lifetime_mean", "5 s"}});
  for (const auto& [key, value] : over)
    UNSCOPED_INFO(key << " = " << value);
  const auto cost = cost_of_toml(world + "[strategy]\nname = \"fedavg\"\n", over);
  const auto ran = run_toml(world + "[strategy]\nname = \"fedavg\"\n", {.over = over}).summary;
  const auto& played = cost.played.report;
  CHECK(cost.played.exact);
  CHECK(played.rounds == ran.rounds);
  CHECK(played.client_rounds == ran.client_rounds);
  CHECK(played.upload_bytes == ran.upload_bytes);
  CHECK(played.download_bytes == ran.download_bytes);
  CHECK(played.dropped == ran.dropped);
  CHECK(played.late_uploads == ran.late_uploads);
  CHECK(virtual_seconds_of(played) == Approx(ran.virtual_seconds).epsilon(1e-9));
}

TEST_CASE("the FLOPs of a run follow from its rows, epochs, heads and teachers") {
  const std::string all = "[partition]\nkind = \"iid\"\n[training]\nepochs = 2\n[strategy]\nname = \"fedavg\"\n";
  const overrides once{{"rounds.per_task", "1"}, {"rounds.cohort", "0"}};
  const auto with = [&](const std::string& method, const std::string& part) {
    auto over = once;
    over.emplace_back("strategy.name", method);
    over.emplace_back("model.trainable", part);
    over.emplace_back("model.weights", "as-drawn");
    return cost_of_toml(world + all, over);
  };
  // 60 rows per task, used twice. The nets are 6-5-2 and then 6-5-4, with products of 30 and 5 c weights for c classes.
  // The forward pass takes 2 (30 + 5 c). The backward pass takes the same, and once more for the layers after the
  // first.
  const double first = 120.0 * (2 * 40 + 2 * (40 + 10)), second = 120.0 * (2 * 50 + 2 * (50 + 20));
  CHECK(with("fedavg", "all").train_flops == first + second);
  CHECK(with("fedavg", "all").evaluate_flops == 60.0 * 2 * 40 + 120.0 * 2 * 50);
  CHECK(with("fed-lwf", "all").train_flops == first + second + 120.0 * 2 * 40); // with a teacher of two classes
  CHECK(with("fedavg", "head").train_flops == 120.0 * (2 * 40 + 2 * 10 + 2 * 50 + 2 * 20)); // head gradients only
}

TEST_CASE("the cost of a method with other jobs is reported as a lower bound") {
  const auto cost = cost_of_toml(world + "[strategy]\nname = \"fed-dyn\"\n", {});
  CHECK_FALSE(cost.played.exact);
  CHECK(cost.played.report.client_rounds == 30);
  CHECK(cost.train_flops > 0.0);
  CHECK(cost.seconds > 0.0);
  CHECK(cost.memory_bytes() > static_cast<double>(100 << 20));
}

TEST_CASE("clients that exceed the memory are rejected with keys, estimate and available memory") {
  scenario settings;
  settings.clients.count = 100'000'000;
  settings.rounds.cohort = 1'000;
  settings.file = "a.toml";
  CHECK(check_client_memory(settings, {.bytes = std::int64_t{8} << 30, .source = "free on this machine"}).empty());
  const auto errors = check_client_memory(settings, {.bytes = std::int64_t{1} << 30, .source = "free on this machine"});
  REQUIRE(errors.size() == 1); // 4 bytes per client, and 4 for each of five tasks
  CHECK(errors[0].where == "a.toml");
  CHECK(errors[0].text ==
        "clients.count = 100000000 with rounds.cohort = 1000: needs more memory than the 1.0 GiB that are free on this "
        "machine: clients about 2.2 GiB, clients in flight about 5.2 MiB. Expected fewer clients");
  settings.rounds.mode = round_mode::async;
  settings.rounds.concurrency = 50'000'000;
  const auto busy = check_client_memory(settings, {.bytes = std::int64_t{8} << 30, .source = "free on this machine"});
  REQUIRE(busy.size() == 1);
  CHECK(busy[0].text.find("with rounds.concurrency = 50000000: needs more memory") != std::string::npos);
  CHECK(busy[0].text.ends_with("Expected fewer clients in flight"));
  settings.clients.count = 20;
  settings.rounds.cohort = 10;
  settings.partition.kind = partition_kind::sampled;
  settings.partition.rows_per_client = std::int64_t{1} << 40;
  settings.key_places["partition.rows_per_client"] = "a.toml:7:19";
  const auto long_lists =
      check_client_memory(settings, {.bytes = std::int64_t{8} << 30, .source = "free on this machine"});
  REQUIRE(long_lists.size() == 1);
  CHECK(long_lists[0].where == "a.toml:7:19");
  CHECK(long_lists[0].text.ends_with("Expected fewer rows of each, partition.rows_per_client"));
}
