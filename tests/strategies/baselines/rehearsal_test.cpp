// Memories of clients of class-incremental methods, and refused settings.
#include "tests/support/rehearsing_client.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

using numbers = std::vector<std::int64_t>;

numbers remembered(const memory_ref& memory) {
  const auto& rows = memory->at("exemplars");
  return {rows.const_data_ptr<std::int64_t>(), rows.const_data_ptr<std::int64_t>() + rows.numel()};
}
std::map<std::int64_t, std::int64_t> by_class(const rehearsing_client& client, const numbers& rows) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto row : rows)
    ++counts[client.rows->label(row)];
  return counts;
}

} // namespace

TEST_CASE("exemplars are selected once a task is over, and later lists are prefixes of earlier ones", "[rehearsal]") {
  const rehearsing_client client("icarl", {2, 2, 2}, {{"memory", "13"}});
  CHECK(client.round(client.work(client.sent(0, false), client.rows_of(0, 0, 9))).memory == nullptr);
  const auto second = client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 9))).memory;
  const auto early = remembered(second);
  CHECK(by_class(client, early) == std::map<std::int64_t, std::int64_t>{{0, 6}, {1, 6}}); // 13 / 2
  CHECK(client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 9), second)).memory == nullptr);
  const auto late =
      remembered(client.round(client.work(client.sent(2, false), client.rows_of(0, 2, 9), second)).memory);
  CHECK(by_class(client, late) == std::map<std::int64_t, std::int64_t>{{0, 3}, {1, 3}, {2, 3}, {3, 3}}); // 13 / 4
  CHECK(numbers(late.begin(), late.begin() + 3) == numbers(early.begin(), early.begin() + 3));
}

TEST_CASE("a client that missed whole tasks catches up task by task", "[rehearsal]") {
  const rehearsing_client client("icarl", {2, 2, 2}, {{"memory", "13"}});
  const auto work = client.work(client.sent(2, false), client.rows_of(0, 2, 9));
  const auto at_once = remembered(client.round(work).memory);
  const auto second = client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 9))).memory;
  const auto one_by_one = client.round(client.work(client.sent(2, false), client.rows_of(0, 2, 9), second)).memory;
  CHECK(at_once == remembered(one_by_one)); // the received model is the same
}

TEST_CASE("clients train on current rows and all exemplars, with the model before the task as teacher", "[rehearsal]") {
  const rehearsing_client client("icarl", {2, 2}, {{"memory", "8"}});
  const auto job = client.training(1);
  CHECK(job.samples.size() == 8 + 8); // four of each of two classes, and 8 / 2 exemplars of two others
  CHECK(job.options.teachers.at(0).classes == class_range{0, 2});
  CHECK(job.options.classes == class_range{0, 4});
  CHECK(client.training(0).teachers.empty());
}

TEST_CASE("the memory of the federation is divided among its clients", "[rehearsal]") {
  rehearsing_client client("icarl", {2, 2}, {{"memory", "24"}, {"memory_scope", "federation"}});
  client.setup.clients = 3;
  client.method->prepare(client.setup);
  CHECK(client.training(1).samples.size() == 8 + 8);
  client.setup.clients = 7;
  const auto errors = client.method->check(client.setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].text ==
        "strategy.memory = 24: 3 exemplars per client cannot cover the 4 classes of the run; expected at least 28");
}

TEST_CASE("a selected read-out stays when the keys are bound again", "[rehearsal]") {
  for (const auto& [name, usual] : {std::pair("icarl", "nme"), std::pair("geodl", "nme"), std::pair("podnet", "argmax"),
                                    std::pair("afc", "argmax")}) {
    INFO(name);
    const auto method = strategy_named(name);
    const auto readout = [&] {
      key_table table;
      method->keys(table);
      return table.find("readout")->current();
    };
    CHECK(readout() == usual);
    for (const auto* const word : {"argmax", "nme"}) {
      give_keys(*method, {{"readout", word}});
      CHECK(readout() == word);
    }
  }
}

TEST_CASE("tasks that repeat their classes are refused", "[rehearsal]") {
  rehearsing_client client("icarl", {2, 2});
  CHECK(client.method->check(client.setup).empty());
  client.setup.task_classes = {{0, 4}, {0, 4}};
  const auto errors = client.method->check(client.setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "tasks.kind");
}

TEST_CASE("tensors sent with the weights are not part of their mean", "[rehearsal]") {
  const rehearsing_client client("icarl", {2, 2}, {{"memory", "8"}});
  const auto server = client.method->make_server();
  const auto result = client.round(client.work(client.sent(1, true), client.rows_of(0, 1, 5)));
  server->fold({.upload = result.upload, .rows = result.rows});
  server->fold({.upload = result.upload, .rows = 1}); // the weight of any other client
  job_channel channel;
  server_context ctx(channel);
  run_step(server->close_round(ctx, client.sent(1, true).info), channel, *client.device);
  CHECK(at::allclose(server->predict().weights->at(flat_weights), result.upload->at(flat_weights), 0.0, 1e-7));
}

TEST_CASE("class means mirror only images, and take the time of their passes", "[rehearsal]") {
  constexpr std::int64_t side = 4, pixels = side * side;
  const auto net = model_named("linear", {1, side, side}, 4);
  const auto values = drawn({40, pixels}, 3);
  const auto job_with = [&](bool are_images, const char* mirrored) {
    rehearsing_client client("icarl", {2, 2}, {{"memory", "8"}, {"mirrored", mirrored}}, net);
    auto rows = std::make_shared<dataset>();
    for (std::int64_t row = 0; row < 40; ++row)
      rows->labels.push_back(static_cast<std::int32_t>(row % 4));
    rows->transforms.resize(1);
    client.setup.shape = {1, side, side};
    if (are_images) {
      rows->images = values.mul(50).add(128).clamp(0, 255).to(at::kByte).view({40, 1, side, side}).contiguous();
      rows->scale = client.setup.scale;
      rows->shift = client.setup.shift;
    } else {
      rows->vectors = values.contiguous();
      rows->vector_shape = {1, side, side};
      client.setup.scale = client.setup.shift = {};
    }
    client.rows = rows;
    client.method->prepare(client.setup);
    const auto jobs = jobs_of_kind<program_job>(
        jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 5))));
    REQUIRE(jobs.size() == 1);
    return jobs.front();
  };
  const auto sums_of = [](const program_job& job) {
    const std::vector<mneme::job> single{{.id = {}, .request = job}};
    return std::get<program_output>(std::get<work_output>(make_executor("cpu")->run(single).front()))
        .out->at(class_sums_name);
  };
  // Four exemplars of each of two old classes, two rows of each of two new ones.
  const auto plain = job_with(false, "false"), numbers_by_default = job_with(false, "true");
  CHECK(plain.rows == 12);
  CHECK(numbers_by_default.rows == 12);
  CHECK(at::equal(sums_of(numbers_by_default), sums_of(plain)));
  const auto images = job_with(true, "true"), unmirrored = job_with(true, "false");
  CHECK(images.rows == 24);
  CHECK(unmirrored.rows == 12);
  CHECK_FALSE(at::equal(sums_of(images), sums_of(unmirrored)));
}
