// FedHAF and its baselines on the same net, without actors: trained parts by stage, memories and uploads of clients,
// and refused settings.
#include "strategies/shared/adjustment_net.hpp"
#include "tests/strategies/shared/split_client.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::split_case;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

/// True if every parameter of the part kept its bits, with running statistics.
bool part_kept(const model& net, const std::string& part, const at::Tensor& before, const at::Tensor& after) {
  for (const auto& entry : net.layout())
    if (entry.name.starts_with(part) &&
        !at::equal(before.narrow(0, entry.offset, entry.size), after.narrow(0, entry.offset, entry.size)))
      return false;
  return true;
}

std::int64_t parameters_of(const model& net, const std::string& part, bool buffers) {
  std::int64_t count = 0;
  for (const auto& entry : net.layout())
    if (entry.name.starts_with(part) && entry.buffer == buffers)
      count += entry.size;
  return count;
}

} // namespace

TEST_CASE("shapes and numbers of parameters are those of Table 6") {
  const auto plain = adjustment_net({.shortcut = shortcut_form::none}, 2048, 100);
  CHECK(parameters_of(*plain, "adjustment.", false) == 1'445'632);
  CHECK(parameters_of(*plain, "head.", false) == 46'052);
  CHECK(parameters_of(*plain, "", false) == 1'491'684);
  CHECK(parameters_of(*plain, "", true) == 2'816); // and four counters, which our net lacks
  const auto usual = adjustment_net({}, 2048, 100);
  CHECK(parameters_of(*usual, "", false) == 1'622'756);
  const auto wide = adjustment_net({.shortcut = shortcut_form::input_projection}, 2048, 100);
  CHECK(parameters_of(*wide, "", false) == 2'015'972);
  CHECK(parameters_of(*adjustment_net({.shortcut = shortcut_form::none}, 768, 80), "adjustment.", false) == 790'272);
  const auto weights = draw_adjustment(*usual, matrix_draw::kaiming, {.seed = 3}).unsqueeze(0);
  const auto seen = usual->forward(weights, drawn({1, 4, 1, 1, 2048}, 1), {0, 30}, nullptr);
  CHECK(seen.features.sizes() == at::IntArrayRef{1, 4, 256});
  CHECK(seen.logits.sizes() == at::IntArrayRef{1, 4, 30});
}

TEST_CASE("the net equals its layers computed by PyTorch's operators") {
  const auto value_of = [](const model& net, const at::Tensor& flat, const std::string& name) {
    for (const auto& entry : net.layout())
      if (entry.name == name)
        return as_in_files(flat, entry);
    FAIL("no parameter " << name);
    return at::Tensor{};
  };
  for (const auto shortcut : {shortcut_form::hidden_projection, shortcut_form::input_projection,
                              shortcut_form::hidden_sum, shortcut_form::none}) {
    CAPTURE(static_cast<int>(shortcut));
    const auto net = adjustment_net({.hidden = {9, 9}, .width = 5, .head = 4, .shortcut = shortcut}, 7, 3);
    const auto flat = draw_adjustment(*net, matrix_draw::kaiming, {.seed = 3}) + 0.05 * drawn({net->size()}, 2).abs();
    const auto x = drawn({6, 7}, 1);
    const auto linear = [&](const at::Tensor& in, const std::string& name) {
      return at::linear(in, value_of(*net, flat, name + ".weight"), value_of(*net, flat, name + ".bias"));
    };
    const auto norm = [&](const at::Tensor& in, const std::string& name) {
      return at::batch_norm(in, value_of(*net, flat, name + ".weight"), value_of(*net, flat, name + ".bias"),
                            value_of(*net, flat, name + ".running_mean"), value_of(*net, flat, name + ".running_var"),
                            false, 0.1, 1e-5, false);
    };
    const auto first = at::relu(norm(linear(x, "adjustment.fc1"), "adjustment.bn1"));
    auto hidden = at::relu(norm(linear(first, "adjustment.fc2"), "adjustment.bn2"));
    if (shortcut == shortcut_form::hidden_sum)
      hidden = hidden + first;
    auto features = norm(linear(hidden, "adjustment.fc3"), "adjustment.bn3");
    if (shortcut == shortcut_form::hidden_projection || shortcut == shortcut_form::input_projection)
      features = features + at::linear(shortcut == shortcut_form::hidden_projection ? first : x,
                                       value_of(*net, flat, "adjustment.shortcut.weight"));
    const auto logits = linear(at::relu(norm(linear(features, "head.fc1"), "head.bn1")), "head.fc2");
    const auto seen = net->forward(flat.unsqueeze(0), x.view({1, 6, 1, 1, 7}), {0, 3}, nullptr);
    CHECK(largest_difference(seen.features[0].contiguous(), features.contiguous()) < 1e-5);
    CHECK(largest_difference(seen.logits[0].contiguous(), logits.contiguous()) < 1e-5);
  }
}

TEST_CASE("stage 1 keeps the bits of the module, and stage 2 those of the head") {
  split_client heads("fedhaf", {{"adjustment_epochs", "0"}});
  split_client modules("fedhaf", {{"stage2_ce", "always"}});
  modules.setup.training.epochs = 0; // no stage 1
  modules.method->prepare(modules.setup);
  modules.server = modules.method->make_server();
  for (auto* client : {&heads, &modules}) {
    const bool is_head = client == &heads;
    for (std::uint32_t task = 0; task < 2; ++task) {
      client->open(task);
      const auto before = client->sent(task).weights->at(flat_weights).clone();
      const auto after = client->round(task).upload->at(flat_weights);
      CHECK(part_kept(*client->learned(), "adjustment.", before, after) == is_head);
      CHECK(part_kept(*client->learned(), "head.", before, after) != is_head);
    }
  }
}

TEST_CASE("without labels in stage 2 the first task leaves the module's initial matrices unchanged") {
  split_client literal("fedhaf", {{"stage2_ce", "never"}});
  literal.open(0);
  const auto before = literal.sent(0).weights->at(flat_weights).clone();
  const auto after = literal.round(0).upload->at(flat_weights);
  CHECK(part_kept(*literal.learned(), "adjustment.fc", before, after));
  literal.open(1);
  const auto second = literal.round(1).upload->at(flat_weights);
  CHECK_FALSE(part_kept(*literal.learned(), "adjustment.fc1", after, second)); // changed by the two other losses
}

TEST_CASE("the backbone is neither changed nor sent; module, head and statistics are") {
  split_client client("fedhaf");
  const auto net = client.learned();
  for (std::uint32_t task = 0; task < 2; ++task) {
    client.open(task);
    const auto in = client.sent(task);
    CHECK(in.initial_payload == nullptr);
    CHECK(in.weights->bytes() == net->size() * 4);
    CHECK((in.extra ? in.extra->bytes() : 0) == (task > 0 ? net->size() * 4 : 0));
    CHECK(client.round(task).upload->bytes() == net->size() * 4);
    const auto whole = client.server->predict().weights->at(flat_weights);
    CHECK(at::equal(whole.narrow(0, 0, client.setup.net->size()), client.setup.initial->at(flat_weights)));
  }
}

TEST_CASE("head rows of later classes stay unchanged, as do old ones outside the loss") {
  split_client client("fedhaf", {{"ce_scope", "task"}, {"ce_rows", "new"}, {"distillation", "0"}});
  const auto row_of = [&](const at::Tensor& flat, std::int64_t label) {
    for (const auto& entry : client.learned()->layout())
      if (entry.name == "head.fc2.weight")
        return as_in_files(flat, entry)[label].clone();
    return at::Tensor{};
  };
  client.open(0);
  const auto drawn_rows = client.sent(0).weights->at(flat_weights).clone();
  const auto first = client.round(0).upload->at(flat_weights).clone();
  for (std::int64_t label = 0; label < classes; ++label)
    CHECK(at::equal(row_of(drawn_rows, label), row_of(first, label)) == (label >= 2));
  client.open(1);
  const auto second = client.round(1).upload->at(flat_weights).clone();
  for (std::int64_t label = 0; label < classes; ++label)
    CHECK(at::equal(row_of(first, label), row_of(second, label)) == (label < 2 || label >= 4));
}

TEST_CASE("clients select exemplars at their first upload in a task and replay them in later tasks") {
  split_client client("fedhaf", {{"exemplar_ratio", "0.25"}});
  client.open(0);
  CHECK(client.round(0).rows == rows_of_task);
  CHECK(client.memory->at("chosen").numel() == 10); // of twenty rows of each of two classes
  const auto kept = client.memory;
  CHECK(client.round(0).rows == rows_of_task);
  CHECK(at::equal(client.memory->at("chosen"), kept->at("chosen")));
  client.open(1);
  CHECK(client.round(1).rows == rows_of_task + 10);
  client.open(2);
  CHECK(client.round(2).rows == rows_of_task + 20);
}

TEST_CASE("the teacher is the model at the start of a task, for all its rounds") {
  split_client client("fedhaf");
  client.open(0);
  (void)client.round(0);
  (void)client.round(0);
  client.open(1);
  const auto begun = client.sent(1);
  CHECK(at::equal(begun.extra->at(flat_weights), begun.weights->at(flat_weights)));
  (void)client.round(1);
  const auto later = client.sent(1);
  CHECK(at::equal(later.extra->at(flat_weights), begun.extra->at(flat_weights)));
  CHECK_FALSE(at::equal(later.weights->at(flat_weights), begun.weights->at(flat_weights)));
}

TEST_CASE("module and head are reinitialized for each task if set") {
  split_client client("fedhaf", {{"reinit_each_task", "true"}});
  client.open(0);
  const auto first = client.sent(0).weights->at(flat_weights).clone();
  (void)client.round(0);
  client.open(1);
  const auto again = client.sent(1);
  CHECK_FALSE(at::equal(again.weights->at(flat_weights), first));
  CHECK_FALSE(at::equal(again.weights->at(flat_weights), again.extra->at(flat_weights)));
}

TEST_CASE("averages weight clients by rows, with running statistics, and keep equal values") {
  split_client client("split-fedavg");
  const auto net = client.learned();
  const auto fold = [&](float value, std::int64_t rows) {
    client.server->fold({.upload = weights_only(at::full({net->size()}, value)), .rows = rows});
  };
  const auto close = [&] {
    job_channel channel;
    server_context ctx(channel);
    run_step(client.server->close_round(ctx, split_client::place_in(0)), channel, *client.device);
    return client.sent(0).weights->at(flat_weights);
  };
  fold(1.0F, 1);
  fold(5.0F, 3);
  CHECK(at::equal(close(), at::full({net->size()}, 4.0F)));
  fold(0.3F, 7);
  fold(0.3F, 11);
  CHECK(at::equal(close(), at::full({net->size()}, 0.3F)));
}

TEST_CASE("the gradient of both parts together is no longer than the sum of its parts") {
  const auto net = adjustment_net({.hidden = {9, 9}, .width = 5, .head = 4, .dropout = 0.0}, 7, 3);
  const auto device = make_executor("cpu");
  auto source = std::make_shared<dataset>();
  source->vectors = drawn({12, 7}, 1);
  for (std::int32_t i = 0; i < 12; ++i)
    source->labels.push_back(i % 3);
  std::vector<std::int64_t> every(12);
  std::iota(every.begin(), every.end(), 0);
  train_job job{.net = net,
                .start = weights_only(draw_adjustment(*net, matrix_draw::kaiming, {.seed = 3})),
                .samples = view_of(source, every)};
  job.options = {.batch_rows = 0, .classes = {0, 3}, .result = training_result::gradient, .evaluation = true};
  const auto norm_of = [&](std::vector<std::string> layers) {
    auto asked = job;
    asked.options.trained = trainable_part::layers;
    asked.options.layers = std::move(layers);
    const std::vector<mneme::job> batch{{.id = {}, .request = asked}};
    const auto made = device->run(batch);
    return std::get<train_output>(std::get<work_output>(made[0])).gradients.norm().item<double>();
  };
  const auto whole = norm_of({"adjustment", "head"}), module = norm_of({"adjustment"}), head = norm_of({"head"});
  CHECK(whole <= module + head);
  CHECK(whole == Approx(std::sqrt(module * module + head * head)).epsilon(1e-5));
}

TEST_CASE("FLwF-2T with all weight on labels is FedAvg, and teachers change the result") {
  split_client plain("split-fedavg"), alone("fed-lwf-2t", {{"label_weight", "1"}, {"own_weight", "0"}}),
      taught("fed-lwf-2t");
  at::Tensor last[3];
  for (std::uint32_t task = 0; task < 2; ++task) {
    std::size_t i = 0;
    for (auto* client : {&plain, &alone, &taught}) {
      client->open(task);
      last[i++] = client->round(task).upload->at(flat_weights);
    }
    CHECK(at::equal(last[0], last[1]));
    CHECK(at::equal(last[0], last[2]) == (task == 0));
  }
  CHECK(at::equal(taught.memory->at("own_model"), last[2]));
}

TEST_CASE("FLwF-2T's own teacher is the client's model of its last task") {
  split_client client("fed-lwf-2t");
  client.open(0);
  const auto first = client.round(0).upload->at(flat_weights);
  client.open(1);
  (void)client.round(1);
  CHECK(at::equal(client.memory->at("own_teacher"), first));
  const auto second = client.round(1).upload->at(flat_weights);
  CHECK(at::equal(client.memory->at("own_teacher"), first));
  client.open(2);
  (void)client.round(2);
  CHECK(at::equal(client.memory->at("own_teacher"), second));
}

TEST_CASE("Oracle trains on all clients' rows of all tasks so far, and FedProx with mu = 0 is FedAvg") {
  CHECK(strategy_named("split-oracle")->needs().rows == row_visibility::centralized);
  split_client plain("split-fedavg"), prox("split-fedprox", {{"mu", "0"}});
  plain.open(0);
  prox.open(0);
  CHECK(at::equal(plain.round(0).upload->at(flat_weights), prox.round(0).upload->at(flat_weights)));
}

TEST_CASE("features may be the means of an intermediate layer") {
  split_client client("split-fedavg", {{"feature_layer", "fc1"}});
  CHECK(client.server->predict().classifier->reads == 200);
  client.open(0);
  CHECK(client.round(0).memory->at("current.features").sizes() == at::IntArrayRef{rows_of_task, 200});
}

TEST_CASE("incomplete settings of a split net are refused with reasons") {
  auto method = strategy_named("fedhaf");
  give_keys(*method,
            {{"exemplar_ratio", "0"}, {"ce_rows", "new"}, {"shortcut", "hidden-sum"}, {"adjustment_width", "8"}});
  auto setup = setup_of_run(model_named("mlp", {1, 1, pixels}, classes), pixels, 2);
  setup.task_classes = {{0, 6}, {0, 6}};
  setup.trainable = trainable_part::head;
  setup.training.augment = augmentation_kind::crop_flip;
  std::map<std::string, std::string> found;
  for (const auto& errors : method->check(setup))
    found[errors.where] = errors.text;
  CHECK_THAT(found["strategy.exemplar_ratio"], ContainsSubstring("losses that read them are on"));
  CHECK_THAT(found["strategy.ce_rows"], ContainsSubstring("ablation = \"cross-entropy\""));
  CHECK_THAT(found["tasks.kind"], ContainsSubstring("repeat their classes"));
  CHECK_THAT(found["model.trainable"], ContainsSubstring("expected \"all\""));
  CHECK_THAT(found["training.augment"], ContainsSubstring("expected \"none\""));
  CHECK(found.size() == 5);

  auto other = strategy_named("split-fedavg");
  give_keys(*other, {{"feature_layer", "layer9"}});
  setup.training.augment = augmentation_kind::none;
  setup.trainable = trainable_part::all;
  setup.task_classes = {{0, 3}, {3, 6}};
  const auto errors = other->check(setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "strategy.feature_layer");
  CHECK_THAT(errors[0].text, ContainsSubstring("one of: fc1, fc2"));
}
