// FedCIL without actors: how the server weighs and consolidates, and what a client's game is given.
#include "strategies/fed_cil/feature_gan.hpp"
#include "tests/strategies/shared/split_client.hpp"
#include "tests/support/tensors.hpp"
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::split_case;

namespace {

const key_list quick{{"local_steps", "2"},     {"consolidation_steps", "0"}, {"latent", "3"},
                     {"generator_width", "4"}, {"critic_width", "5"},        {"gan_batch", "4"}};

/// As split_client, whose keys FedCIL does not have.
struct cil_client {
  std::unique_ptr<strategy> method = strategy_named("fed-cil");
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows = striped_rows(120, pixels, classes);
  std::unique_ptr<server_half> server;

  explicit cil_client(key_list keys = quick) {
    give_keys(*method, keys.pairs);
    auto setup = setup_of_run(model_named("mlp", {1, 1, pixels}, classes), pixels, 3);
    setup.task_classes = {{0, 2}, {2, 4}, {4, 6}};
    method->prepare(setup);
    server = method->make_server();
  }
  [[nodiscard]] broadcast sent(const round_place& place) const {
    auto in = server->open_round(place);
    in.place = place;
    return in;
  }
  void fold(const tensors_ref& upload, std::int64_t upload_rows) {
    server->fold({.upload = upload, .rows = upload_rows});
  }
  void open(std::uint32_t task) {
    job_desk desk;
    server_context ctx(desk);
    run_step(server->open_task(ctx, class_task(task, 2)), desk, *device);
  }
  plan close(std::uint32_t task) {
    job_desk desk;
    server_context ctx(desk);
    plan jobs;
    run_shown_step(server->close_round(ctx, class_task(task, 2)), desk, *device,
                   [&](const plan& wanted) { jobs.insert(jobs.end(), wanted.begin(), wanted.end()); });
    return jobs;
  }
  [[nodiscard]] assignment assigned(const round_place& place, const memory_ref& memory) const {
    std::vector<std::int64_t> mine;
    for (std::int64_t r = 0; r < 120; ++r)
      if (place.current.low <= r % classes && r % classes < place.current.high)
        mine.push_back(r);
    return {.in = std::make_shared<const broadcast>(sent(place)),
            .memory = memory,
            .samples = view_of(rows, mine),
            .seed = 5,
            .task = place.task};
  }
  /// The game of a client's round.
  program_job game(const round_place& place, const memory_ref& memory = nullptr) {
    const auto jobs = jobs_of_kind<program_job>(jobs_of_round(*method, *device, assigned(place, memory)));
    REQUIRE(jobs.size() == 1);
    return jobs[0];
  }
};

tensors_ref nets_of(const broadcast& like, float critic, float generator) {
  auto made = std::make_shared<tensor_map>();
  made->put(flat_weights, at::full_like(like.weights->at(flat_weights), critic));
  made->put("generator", at::full_like(like.extra->at("generator"), generator));
  return made;
}

} // namespace

TEST_CASE("FedCIL's server weighs critics and generators by rows, and hears nobody without rows") {
  cil_client federation;
  const auto in = federation.sent(class_task(0, 2));
  federation.fold(nets_of(in, 1.0F, 2.0F), 30);
  federation.fold(nets_of(in, 5.0F, 6.0F), 10);
  federation.fold(nets_of(in, 100.0F, 100.0F), 0);
  CHECK(federation.close(0).empty()); // no steps of consolidation were asked for
  const auto next = federation.sent(class_task(0, 2));
  CHECK((next.weights->at(flat_weights) == 2.0F).all().item<bool>());
  CHECK((next.extra->at("generator") == 3.0F).all().item<bool>());
}

TEST_CASE("FedCIL's server goes on training on rows of all clients' generators") {
  auto keys = quick;
  keys.pairs[1].second = "3";
  cil_client federation(keys);
  const auto in = federation.sent(class_task(0, 2));
  federation.fold(nets_of(in, 0.1F, 0.2F), 30);
  federation.fold(nets_of(in, 0.3F, 0.4F), 10);
  const auto jobs = jobs_of_kind<program_job>(federation.close(0));
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].in->at("generators").size(0) == 2);
  CHECK((jobs[0].in->at("generators")[1] == 0.4F).all().item<bool>());
  CHECK(largest_difference(jobs[0].in->at("critic"), at::full_like(jobs[0].in->at("critic"), 0.15F)) < 1e-6);
  CHECK(at::equal(jobs[0].in->at("fresh"), at::tensor({0, 1}, at::kLong)));
  CHECK_FALSE(at::equal(federation.sent(class_task(0, 2)).weights->at(flat_weights), jobs[0].in->at("critic")));
}

TEST_CASE("FedCIL's clients agree with the server's generator from the second round of a task on") {
  cil_client federation;
  auto place = class_task(0, 2);
  CHECK_FALSE(federation.game(place).in->find("server_generator"));
  place.round_of_task = 1;
  const auto later = federation.game(place);
  REQUIRE(later.in->find("server_generator"));
  CHECK(at::equal(later.in->at("server_generator"), federation.sent(place).extra->at("generator")));
  auto keys = quick;
  keys.pairs.emplace_back("consistency", "0");
  cil_client published(keys);
  CHECK_FALSE(published.game(place).in->find("server_generator"));
}

TEST_CASE("FedCIL's clients replay the generator with which the task before ended") {
  cil_client federation;
  const auto in = federation.sent(class_task(0, 2));
  federation.open(0);
  federation.fold(nets_of(in, 0.1F, 0.2F), 10);
  (void)federation.close(0);
  federation.open(1);
  federation.fold(nets_of(in, 0.3F, 0.4F), 10);
  (void)federation.close(1);
  const auto game = federation.game(class_task(1, 2));
  CHECK(largest_difference(game.in->at("old_generator"), at::full_like(game.in->at("old_generator"), 0.2F)) < 1e-6);
  CHECK(largest_difference(game.in->at("generator"), at::full_like(game.in->at("generator"), 0.4F)) < 1e-6);
  CHECK(game.rows == 2 * 4);
}

TEST_CASE("FedCIL's clients go on with their moments, and replay their own generator where asked to") {
  auto keys = quick;
  keys.pairs.insert(keys.pairs.end(), {{"replay", "own"}, {"fake_labels", "any"}, {"consolidation", "pooled"}});
  cil_client federation(keys);
  federation.open(0);
  const auto place = class_task(0, 2);
  CHECK(federation.game(place).in->at("critic.steps").item<std::int64_t>() == 0);
  const auto first = run_round(*federation.method, *federation.device, federation.assigned(place, nullptr));
  CHECK(first.memory->at("critic.steps").item<std::int64_t>() == 2);
  CHECK(at::equal(first.upload->at("own_classes"), floats({1, 1, 0, 0, 0, 0})));
  CHECK_FALSE(first.upload->find("old_generator"));
  const auto again = federation.game(place, first.memory);
  CHECK(at::equal(again.in->at("generator.first"), first.memory->at("generator.first")));
  CHECK_FALSE(again.in->find("old_generator")); // still in the task

  federation.fold(first.upload, first.rows);
  (void)federation.close(0);
  federation.open(1);
  CHECK_FALSE(federation.sent(class_task(1, 2)).extra->find("old_generator"));
  const auto next = federation.game(class_task(1, 2), first.memory);
  CHECK(at::equal(next.in->at("old_generator"), first.upload->at("generator")));
  CHECK(at::equal(next.in->at("old_classes"), floats({1, 1, 0, 0, 0, 0})));
  CHECK(at::equal(next.in->at("classes_so_far"), floats({1, 1, 1, 1, 0, 0})));
  const auto later =
      run_round(*federation.method, *federation.device, federation.assigned(class_task(1, 2), first.memory));
  CHECK(at::equal(later.upload->at("old_generator"), first.upload->at("generator")));
  CHECK(later.memory->at("critic.steps").item<std::int64_t>() == 4);
}

TEST_CASE("FedCIL refuses codes that are shorter than the labels in them") {
  auto method = strategy_named("fed-cil");
  give_keys(*method, {{"latent", "3"}, {"codes", "overwritten"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, pixels}, classes), pixels, 3);
  const auto wrong = method->check(setup);
  REQUIRE_FALSE(wrong.empty());
  CHECK(wrong.back().where == "strategy.latent");
  CHECK(wrong.back().text.find("expected 6 or more") != std::string::npos);
}
