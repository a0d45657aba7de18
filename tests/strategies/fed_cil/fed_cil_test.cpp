// FedCIL without actors: weights and consolidation of the server, and inputs of a client's GAN training.
#include "strategies/fed_cil/feature_gan.hpp"
#include "tests/strategies/shared/split_client.hpp"
#include "tests/support/tensors.hpp"
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::split_case;

namespace {

const key_list quick{{"local_steps", "2"},     {"consolidation_steps", "0"}, {"latent", "3"},
                     {"generator_width", "4"}, {"critic_width", "5"},        {"gan_batch", "4"}};

/// Like split_client, but without keys that FedCIL does not have.
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
  [[nodiscard]] broadcast sent(const round_info& info) const {
    auto in = server->open_round(info);
    in.info = info;
    return in;
  }
  void fold(const tensors_ref& upload, std::int64_t upload_rows) {
    server->fold({.upload = upload, .rows = upload_rows});
  }
  void open(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    run_step(server->open_task(ctx, class_task(task, 2)), channel, *device);
  }
  plan close(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    plan jobs;
    run_shown_step(server->close_round(ctx, class_task(task, 2)), channel, *device,
                   [&](const plan& wanted) { jobs.insert(jobs.end(), wanted.begin(), wanted.end()); });
    return jobs;
  }
  [[nodiscard]] assignment assigned(const round_info& info, const memory_ref& memory) const {
    std::vector<std::int64_t> mine;
    for (std::int64_t r = 0; r < 120; ++r)
      if (info.current_classes.low <= r % classes && r % classes < info.current_classes.high)
        mine.push_back(r);
    return {.in = std::make_shared<const broadcast>(sent(info)),
            .memory = memory,
            .samples = view_of(rows, mine),
            .seed = 5,
            .task = info.task};
  }
  /// Job that trains the GAN in a client's round.
  program_job game(const round_info& info, const memory_ref& memory = nullptr) {
    const auto jobs = jobs_of_kind<program_job>(jobs_of_round(*method, *device, assigned(info, memory)));
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

TEST_CASE("FedCIL's server weights critics and generators by rows and ignores clients without rows") {
  cil_client federation;
  const auto in = federation.sent(class_task(0, 2));
  federation.fold(nets_of(in, 1.0F, 2.0F), 30);
  federation.fold(nets_of(in, 5.0F, 6.0F), 10);
  federation.fold(nets_of(in, 100.0F, 100.0F), 0);
  CHECK(federation.close(0).empty()); // no steps of consolidation were requested
  const auto next = federation.sent(class_task(0, 2));
  CHECK((next.weights->at(flat_weights) == 2.0F).all().item<bool>());
  CHECK((next.extra->at("generator") == 3.0F).all().item<bool>());
}

TEST_CASE("FedCIL's server trains on rows of all clients' generators") {
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

TEST_CASE("FedCIL's clients use the consistency loss from the second round of a task on") {
  cil_client federation;
  auto info = class_task(0, 2);
  CHECK_FALSE(federation.game(info).in->find("server_generator"));
  info.round_of_task = 1;
  const auto later = federation.game(info);
  REQUIRE(later.in->find("server_generator"));
  CHECK(at::equal(later.in->at("server_generator"), federation.sent(info).extra->at("generator")));
  auto keys = quick;
  keys.pairs.emplace_back("consistency", "0");
  cil_client published(keys);
  CHECK_FALSE(published.game(info).in->find("server_generator"));
}

TEST_CASE("FedCIL's clients replay the generator at the end of the previous task") {
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

TEST_CASE("FedCIL's clients continue with their moments, and replay their own generator if set") {
  auto keys = quick;
  keys.pairs.insert(keys.pairs.end(), {{"replay", "own"}, {"fake_labels", "any"}, {"consolidation", "pooled"}});
  cil_client federation(keys);
  federation.open(0);
  const auto info = class_task(0, 2);
  CHECK(federation.game(info).in->at("critic.steps").item<std::int64_t>() == 0);
  const auto first = run_round(*federation.method, *federation.device, federation.assigned(info, nullptr));
  CHECK(first.memory->at("critic.steps").item<std::int64_t>() == 2);
  CHECK(at::equal(first.upload->at("own_classes"), floats({1, 1, 0, 0, 0, 0})));
  CHECK_FALSE(first.upload->find("old_generator"));
  const auto again = federation.game(info, first.memory);
  CHECK(at::equal(again.in->at("generator.first"), first.memory->at("generator.first")));
  CHECK_FALSE(again.in->find("old_generator")); // the task has not ended

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

TEST_CASE("FedCIL's clients continue a shuffle over rounds and restart it with a task") {
  auto keys = quick;
  keys.pairs.emplace_back("real_rows", "shuffled");
  cil_client federation(keys);
  const auto first = run_round(*federation.method, *federation.device, federation.assigned(class_task(0, 2), nullptr));
  CHECK(federation.game(class_task(0, 2)).in->at("batches").item<std::int64_t>() == 0);
  CHECK(federation.game(class_task(0, 2), first.memory).in->at("batches").item<std::int64_t>() == 2);
  CHECK(federation.game(class_task(1, 2), first.memory).in->at("batches").item<std::int64_t>() == 0);
  cil_client drawn;
  const auto other = run_round(*drawn.method, *drawn.device, drawn.assigned(class_task(0, 2), nullptr));
  CHECK_FALSE(at::equal(other.upload->at(flat_weights), first.upload->at(flat_weights)));
}

TEST_CASE("FedCIL's moments restart in each round, in each task, or never") {
  const auto steps_before = [](const char* moments, std::uint32_t task) -> std::int64_t {
    auto keys = quick;
    keys.pairs.emplace_back("moments", moments);
    cil_client federation(keys);
    const auto first =
        run_round(*federation.method, *federation.device, federation.assigned(class_task(0, 2), nullptr));
    const auto game = federation.game(class_task(task, 2), first.memory);
    const auto* const steps = game.in->find("critic.steps");
    return steps ? steps->item<std::int64_t>() : -1;
  };
  CHECK(steps_before("kept", 0) == 2);
  CHECK(steps_before("kept", 1) == 2);
  CHECK(steps_before("each-task", 0) == 2);
  CHECK(steps_before("each-task", 1) == 0);
  CHECK(steps_before("new", 0) == -1);
}

TEST_CASE("FedCIL's nets are initialized from N(0, 0.02) if set") {
  auto keys = quick;
  keys.pairs.emplace_back("start", "normal");
  const auto sent = cil_client(keys).sent(class_task(0, 2)), usual = cil_client().sent(class_task(0, 2));
  for (const auto& [start, largest] : {std::pair(sent, 0.1F), std::pair(usual, 1.0F)}) {
    CHECK(start.weights->at(flat_weights).abs().max().item<float>() < largest);
    CHECK((start.weights->at(flat_weights) == 0.0F).any().item<bool>() == (largest < 1.0F)); // biases
    CHECK(start.extra->at("generator").abs().max().item<float>() < largest);
  }
}

TEST_CASE("FedCIL's beta2 is passed to Adam") {
  const auto after = [](const char* beta2) {
    auto keys = quick;
    keys.pairs.emplace_back("gan_beta2", beta2);
    cil_client federation(keys);
    const auto first =
        run_round(*federation.method, *federation.device, federation.assigned(class_task(0, 2), nullptr));
    return first.memory->at("critic.second");
  };
  CHECK(after("0.5").sum().item<double>() > 10 * after("0.999").sum().item<double>()); // (1 - beta2) of the squares
}

namespace {

/// Error of a run with nets of images on such data.
std::string setup_error(const char* model, std::array<std::int64_t, 3> shape, bool has_pixels = true) {
  auto method = strategy_named("fed-cil");
  give_keys(*method, {{"nets", "images"}});
  auto setup = setup_of_run(model_named(model, shape, classes), shape[0] * shape[1] * shape[2], 3);
  setup.classes = classes;
  setup.shape = shape;
  if (!has_pixels)
    setup.scale.clear();
  const auto errors = method->check(setup);
  return errors.empty() ? "" : errors.back().where + ": " + errors.back().text;
}

} // namespace

TEST_CASE("FedCIL's nets of images refuse features, numbers, and sizes that are no multiples of 8") {
  CHECK(setup_error("identity", {1, 32, 32}).empty());
  CHECK(setup_error("linear", {3, 16, 24}).empty());
  CHECK(setup_error("mlp", {1, 16, 16}).find("expected model.name = \"identity\", or nets = \"features\"") !=
        std::string::npos);
  CHECK(setup_error("identity", {1, 28, 28}).find("28 x 28 here; expected sides that divide by 8") !=
        std::string::npos);
  CHECK(setup_error("identity", {1, 16, 16}, false).starts_with("data.name: "));
}

TEST_CASE("FedCIL's presets have the numbers of the official code", "[fed-cil]") {
  std::map<std::string, std::string> presets;
  for (const auto& preset : strategy_named("fed-cil")->presets())
    presets[preset.name] = preset.toml;
  const auto says = [&](const std::string& preset, const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
      CAPTURE(preset, line);
      CHECK(("\n" + presets.at(preset)).find("\n" + line + "\n") != std::string::npos);
    }
  };
  const std::vector<std::string> losses{"consistency = 0.0",    "fake_labels = \"any\"",
                                        "class_loss = \"all\"", "codes = \"overwritten\"",
                                        "replay = \"own\"",     "consolidation = \"pooled\""};
  const std::vector<std::string> run{"nets = \"images\"",   "latent = 110",       "generator_width = 64",
                                     "critic_width = 64",   "start = \"normal\"", "real_rows = \"shuffled\"",
                                     "local_steps = 400",   "gan_batch = 32",     "consolidation_steps = 100",
                                     "name = \"identity\"", "resize = 32",        "count = 5",
                                     "per_task = 40"};
  for (const std::string preset : {"official", "official-cifar10", "as-published"})
    says(preset, losses);
  for (const std::string preset : {"official", "official-cifar10"})
    says(preset, run);
  says("official", {"gan_rate = 1e-4", "gan_beta2 = 0.99", "gan_decay = 1e-5", "moments = \"kept\""});
  says("official-cifar10", {"gan_rate = 2e-4", "gan_beta2 = 0.999", "gan_decay = 0.0", "moments = \"each-task\""});
  CHECK(presets.at("as-published").find("nets") == std::string::npos);
}

TEST_CASE("FedCIL refuses codes that are shorter than the one-hot labels in them") {
  auto method = strategy_named("fed-cil");
  give_keys(*method, {{"latent", "3"}, {"codes", "overwritten"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, pixels}, classes), pixels, 3);
  const auto errors = method->check(setup);
  REQUIRE_FALSE(errors.empty());
  CHECK(errors.back().where == "strategy.latent");
  CHECK(errors.back().text.find("expected 6 or more") != std::string::npos);
}
