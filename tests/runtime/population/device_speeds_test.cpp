#include "runtime/population/device_speeds.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace std::chrono_literals;
using Catch::Approx;

namespace {

/// Net with 64 inputs and 10 classes: 2 * 640 operations forward, and as many for the gradient of its weights.
model_ref linear_net() {
  for (const auto& entry : models())
    if (entry.name == "linear")
      return *entry.make()->build({64, 1, 1}, 10);
  return nullptr;
}

scenario with_profile(device_profile profile) {
  scenario from;
  from.clients.count = 10'000;
  from.model.name = "linear";
  from.training.batch = 10;
  profile.source = "slow.toml";
  from.devices.profiles = {{.file = "slow.toml"}};
  from.devices.profiles_read = {std::make_shared<const device_profile>(std::move(profile))};
  return from;
}

expected<std::vector<device_speed>> speeds_of(const scenario& from) {
  return device_speeds_of(from, {.net = *linear_net(), .shape = {64, 1, 1}, .classes = 10});
}

net_speed measured(std::int64_t batch) {
  return {.net = "linear", .parameters = 650, .batch = batch, .train_rows_per_second = 100.0};
}

} // namespace

TEST_CASE("rates are those of the profile's entry for net and batch, plus fixed costs") {
  auto from = with_profile({.job_start = 5ms, .round_start = 20ms, .nets = {measured(32), measured(10)}});
  const auto speeds = speeds_of(from);
  REQUIRE(speeds);
  const population clients(from, {.speeds = *speeds});
  CHECK(clients.devices().compute_time({3}, {.rows = 50}) == 505ms);
  CHECK(clients.devices().compute_time({3}, {.rows = 50, .begins_round = true}) == 525ms);
  CHECK(clients.devices().compute_time({3}, {.rows = 30, .trains = false}) == 105ms); // three times as fast
}

TEST_CASE("without an entry, rates follow from the net's operations or bytes") {
  const auto by_products = speeds_of(with_profile({.flops_per_second = 2560.0 * 500}));
  REQUIRE(by_products);
  CHECK(by_products->front().train_rows_per_second == Approx(500.0));
  CHECK(by_products->front().forward_rows_per_second == Approx(1000.0));
  const auto bytes = static_cast<double>(linear_net()->working_set(10));
  const auto by_memory = speeds_of(with_profile({.flops_per_second = 1e12, .bytes_per_second = 4.0 * bytes}));
  CHECK(by_memory->front().train_rows_per_second == Approx(40.0)); // four steps of ten rows
  CHECK(by_memory->front().forward_rows_per_second == Approx(120.0));
}

TEST_CASE("a profile without the net, and a device without enough memory, are refused with reasons") {
  const auto text_of = [](const device_profile& profile) {
    const auto speeds = speeds_of(with_profile(profile));
    return speeds ? std::string() : speeds.error().front().text;
  };
  CHECK(
      text_of({.nets = {{.net = "lenet", .parameters = 61'706, .batch = 10, .train_rows_per_second = 1.0}}}) ==
      "slow.toml has no [[nets]] entry with net = \"linear\", parameters = 650, and no flops_per_second; expected one "
      "of them, as `mneme calibrate` measures on such a device");
  CHECK(text_of({.nets = {measured(32), measured(64)}}) ==
        "slow.toml has net = \"linear\", parameters = 650 at batch 32, 64, not at training.batch = 10, and no "
        "flops_per_second; expected one of them, as `mneme calibrate` measures on such a device");
  CHECK(text_of({.memory = {1000}, .nets = {measured(10)}})
            .starts_with("slow.toml has 1 kB of memory, and a step of 10 "
                         "rows of this net takes about "));
}

TEST_CASE("clients draw profiles by their shares, and a capacity file overrides those that it names") {
  const scratch_folder folder;
  auto from = with_profile({.nets = {measured(10)}});
  auto fast = measured(10);
  fast.train_rows_per_second = 1000.0;
  from.devices.profiles = {{.file = "slow.toml", .share = 3.0}, {.file = "fast.toml", .share = 1.0}};
  from.devices.profiles_read.push_back(std::make_shared<const device_profile>(device_profile{.nets = {fast}}));
  from.devices.capacity_file = folder.path() / "capacity.csv";
  write_file(from.devices.capacity_file, "client,profile,uplink_mbit\n7,1,\n8,0,4\n9,,2\n");
  const auto capacity = read_capacity_table(from);
  REQUIRE(capacity);
  const population clients(from, {.capacity = *capacity, .speeds = *speeds_of(from)});
  std::int64_t slow = 0;
  for (std::uint32_t c = 0; c < 10'000; ++c)
    slow += clients.devices().compute_time({c}, {.rows = 100}) == 1s;
  CHECK(slow > 7'300);
  CHECK(slow < 7'700);
  CHECK(clients.devices().compute_time({7}, {.rows = 100}) == 100ms);
  CHECK(clients.devices().compute_time({8}, {.rows = 100}) == 1s);
  CHECK(clients.devices().upload_time({.client = {8}, .bytes = 500'000}) == 1050ms);
  CHECK(clients.devices().upload_time({.client = {9}, .bytes = 500'000}) == 2050ms);
  CHECK(clients.devices().compute_time({5}, {.rows = 100}) ==
        population(from, {.speeds = *speeds_of(from)}).devices().compute_time({5}, {.rows = 100}));
}

TEST_CASE("links and jitter of a profile replace the keys") {
  auto from = with_profile(
      {.nets = {measured(10)},
       .link = link_profile{
           .uplink_mbit = 8.0, .downlink_mbit = 0.0, .latency = 30ms, .jitter = {.median = 0.01, .sigma = 0.5}}});
  const population clients(from, {.speeds = *speeds_of(from)});
  const transfer sent{.client = {4}, .bytes = 1'000'000, .visit = 2};
  const auto extra = clients.devices().upload_time(sent) - 1030ms;
  CHECK(extra > 0ns);
  CHECK(extra < 100ms);
  CHECK(clients.devices().upload_time(sent) == clients.devices().upload_time(sent));
  CHECK(clients.devices().upload_time({.client = {4}, .bytes = 1'000'000, .visit = 3}) !=
        clients.devices().upload_time(sent));
  CHECK(clients.devices().download_time(sent) != clients.devices().upload_time(sent) - 1s); // separate draws
  std::vector<virtual_duration> drawn;
  for (std::uint32_t visit = 0; visit < 1001; ++visit)
    drawn.push_back(clients.devices().latency({1}, link_direction::up, visit) - 30ms);
  std::sort(drawn.begin(), drawn.end());
  CHECK(drawn[500] > 9ms);
  CHECK(drawn[500] < 11ms);
}

TEST_CASE("errors of a capacity file have line numbers") {
  const scratch_folder folder;
  auto from = with_profile({.nets = {measured(10)}});
  from.devices.capacity_file = folder.path() / "capacity.csv";
  write_file(from.devices.capacity_file, "client,profile,rows_per_second\n0,1,5\n1,0,0\n2,0,5\n2,0,5\n3,0,-1\n");
  const auto capacity = read_capacity_table(from);
  REQUIRE_FALSE(capacity);
  std::string text;
  for (const auto& diagnostic : capacity.error())
    text += diagnostic.where.substr(diagnostic.where.find("capacity.csv")) + ": " + diagnostic.text + "\n";
  CHECK(text == "capacity.csv:2: profile = 1: expected a whole number below 1, the number of devices.profiles\n"
                "capacity.csv:3: rows_per_second = 0: expected more\n"
                "capacity.csv:5: client 2 has line 4 already; expected one for each client\n"
                "capacity.csv:6: rows_per_second = -1: expected rows, from 0 to 9e9\n");
}
