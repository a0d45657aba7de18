// PILoRA: its net, loss, local epochs and prototype weights compared with the official code; values by hand; parts
// trained in a round, evaluation, and refused settings.
#include "strategies/baselines/pilora/pilora_parts.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_federation.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

const prompt_shape first_block{.form = prompt_form::low_rank, .blocks = {0}, .rank = 4};
const std::vector<class_range> halves{{0, 2}, {2, 4}};

std::shared_ptr<const low_rank_vit> low_rank_net() {
  return std::dynamic_pointer_cast<const low_rank_vit>(small_vit(first_block));
}
/// The script's numbers [P] float64: the transformer, the parts of its task, prototypes.
at::Tensor official_low_rank(const model& net) {
  auto flat = official_prompts(net, 0);
  for (const auto& entry : net.layout()) {
    const bool is_part = entry.name.starts_with("lora.");
    if (is_part || entry.head)
      put_as_in_files(flat, entry,
                      formula_tensor((is_part ? "pilora.1." : "pilora.") + entry.name, entry.shape).to(at::kDouble));
  }
  return flat;
}
std::shared_ptr<dataset> official_rows(const nlohmann::json& labels) {
  auto rows = std::make_shared<dataset>();
  rows->vector_shape = {3, 8, 8};
  std::vector<at::Tensor> steps;
  for (std::size_t step = 0; step < labels.size(); ++step) {
    steps.push_back(formula_tensor(fmt::format("pilora.images.{}", step), {4, 3 * 8 * 8}).to(at::kFloat));
    for (const auto& label : labels[step])
      rows->labels.push_back(label.get<std::int32_t>());
  }
  rows->vectors = at::cat(steps);
  return rows;
}

loss_output step_of(const loss& objective, const at::Tensor& distances, const at::Tensor& labels) {
  const auto rows = distances.size(0);
  const auto z = -distances.unsqueeze(0), y = labels.unsqueeze(0);
  const auto w = at::full({1, rows}, 1.0 / static_cast<double>(rows), at::kFloat);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
  return objective({.logits = z, .features = z, .labels = y, .row_weight = w, .auxiliaries = auxiliaries});
}

rehearsing_client pilora_client(const key_list& keys = {}) {
  const auto method = strategy_named("pilora");
  give_keys(*method, keys.pairs);
  return {"pilora", {2, 2}, keys, row_prompted_vit(method->needs().prompts, halves, rehearsing_client::features)};
}
/// A task of two clients, one round each.
struct trained_task {
  trained_task(const rehearsing_client& client, server_half& server, std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel);
    const auto info = client.sent(task, false).info;
    (void)run_step(server.open_task(ctx, info), channel, *client.device);
    sent = server.open_round(info);
    sent.info = info;
    upload = client.round(client.work(sent, client.rows_of(task, task, 6))).upload;
    server.fold({.from = {0}, .started_from = info.round, .upload = upload, .rows = 6});
    (void)run_step(server.close_round(ctx, info), channel, *client.device);
    evaluated = server.predict().weights->at(flat_weights);
  }
  broadcast sent;
  tensors_ref upload;
  at::Tensor evaluated;
};
const parameter& named_parameter(const model& net, const std::string& name) {
  const auto entry =
      std::find_if(net.layout().begin(), net.layout().end(), [&](const parameter& each) { return each.name == name; });
  REQUIRE(entry != net.layout().end());
  return *entry;
}
at::Tensor queries_of(const rehearsing_client& client, const at::Tensor& flat) {
  const auto joint = as_in_files(flat, named_parameter(*client.setup.net, "blocks.0.attn.qkv.weight"));
  return joint.narrow(0, 0, joint.size(1));
}
at::Tensor product_of(const tensor_map& parts) {
  return at::matmul(parts.at("lora.0.query.up"), parts.at("lora.0.query.down"));
}

std::string complaint(const std::function<void(method_setup&)>& changed) {
  auto setup = setup_of_run(row_prompted_vit(strategy_named("pilora")->needs().prompts, halves, 5), 5, 2);
  setup.task_classes = halves;
  changed(setup);
  const auto errors = strategy_named("pilora")->check(setup);
  return errors.empty() ? "" : errors.front().where + ": " + errors.front().text;
}

} // namespace

TEST_CASE("low-rank adapters, distances and their gradients equal the official code's", "[pilora][official]") {
  const auto theirs = golden_record("prompts/pilora")["passed"];
  const auto net = low_rank_net();
  const auto weights = official_low_rank(*net).unsqueeze(0).requires_grad_(true);
  const auto images = formula_tensor("prompted.images", {1, 4, 3, 8, 8}).to(at::kDouble);
  const auto results = net->differentiable(weights, images, {0, 8}, {});
  CHECK(largest_difference_of(results.features, listed_tensor(theirs["features"], {4, 16})) < 1e-12);
  CHECK(largest_difference_of(-results.logits, listed_tensor(theirs["distances"], {4, 8})) < 1e-12);
  const auto end = (results.features[0] * formula_tensor("prompted.d_features", {4, 16}).to(at::kDouble)).sum();
  const auto gradient = torch::autograd::grad({end}, {weights})[0][0];
  for (const auto& [name, values] : theirs["gradients"].items()) {
    const auto& entry = named_parameter(*net, name);
    CHECK(largest_difference_of(as_in_files(gradient, entry), listed_tensor(values, entry.shape)) < 1e-10);
  }
}

TEST_CASE("low-rank adapters with B = 0 leave the transformer bitwise unchanged", "[pilora]") {
  const auto net = low_rank_net();
  const auto flat = initial_weights(*net, 3);
  for (const auto& entry : net->layout())
    if (entry.name.ends_with(".up"))
      CHECK_FALSE(as_in_files(flat, entry).any().item<bool>());
  const auto images = formula_tensor("prompted.images", {1, 4, 3, 8, 8});
  auto without = flat.clone();
  for (const auto& entry : net->layout())
    if (entry.name.ends_with(".down"))
      as_in_files(without, entry).zero_();
  const auto features = [&](const at::Tensor& weights) {
    return net->forward(weights.unsqueeze(0), images, {}, nullptr, nullptr).features;
  };
  CHECK(at::equal(features(flat), features(without)));
}

TEST_CASE("PILoRA's loss of a step equals the official code's", "[pilora][official]") {
  const auto theirs = golden_record("prompts/pilora")["loss"];
  const auto objective = pilora_objective(*low_rank_net(), {});
  const auto distances = formula_tensor("pilora.distances", {4, 8}).abs().to(at::kFloat);
  const auto ours = step_of(*objective, distances, labels_of(theirs["labels"]));
  CHECK_THAT(ours.values.item<double>(), WithinAbs(theirs["loss"].get<double>(), 1e-6));
  CHECK(largest_difference_of(-ours.d_logits[0], listed_tensor(theirs["gradient"], {4, 8})) < 1e-6);
}

TEST_CASE("PILoRA's loss terms equal values worked out by hand", "[pilora]") {
  const auto objective = pilora_objective(*low_rank_net(), {});
  const auto ours = step_of(*objective, at::tensor({1.0F, 2.0F, 3.0F}).unsqueeze(0), at::zeros({1}, at::kLong));
  CHECK_THAT(ours.terms.at(0).value.item<double>(), WithinAbs(0.407606, 1e-6));
  CHECK_THAT(ours.values.item<double>(), WithinAbs(0.408606, 1e-6));

  // A^s = I_2 and A = [[1, -1], [2, 0]] in the first two of sixteen channels: sums of 4, weighted 0.5 and 0.01.
  const auto net = low_rank_net();
  const auto& down = named_parameter(*net, "lora.0.query.down");
  auto own = at::zeros({4, 16}), earlier = at::zeros({4, 16}), gradient = at::zeros({4 * 16});
  own[0][0] = 1.0F, own[0][1] = -1.0F, own[1][0] = 2.0F;
  earlier[0][0] = earlier[1][1] = 1.0F;
  tensor_map auxiliary;
  auxiliary.put(earlier_weight_name(down), earlier);
  const auto flat = own.flatten();
  const auto penalties = objective->penalties(flat, flat, down.offset, &auxiliary);
  REQUIRE(penalties.size() == 2);
  CHECK_THAT(penalties[0].value.item<double>(), WithinAbs(0.04, 1e-9));
  CHECK_THAT(penalties[1].value.item<double>(), WithinAbs(2.0, 1e-9));
  objective->regularize(flat, flat, down.offset, &auxiliary, gradient);
  // sign(A^s A^T)^T A^s = [[1, -1], [1, 0]]
  CHECK_THAT(gradient[0].item<double>(), WithinAbs(0.51, 1e-6));
  CHECK_THAT(gradient[1].item<double>(), WithinAbs(-0.51, 1e-6));
  CHECK_THAT(gradient[16].item<double>(), WithinAbs(0.51, 1e-6));
  CHECK_THAT(gradient[17].item<double>(), WithinAbs(0.0, 1e-9));
}

TEST_CASE("local epochs give the official code's parts, prototypes and feature means", "[pilora][official]") {
  const auto record = golden_record("prompts/pilora");
  const auto net = low_rank_net();
  auto auxiliary = std::make_shared<tensor_map>();
  for (const auto* const name : {"lora.0.query.down", "lora.0.value.down"}) {
    const auto& entry = named_parameter(*net, name);
    auxiliary->put(earlier_weight_name(entry), formula_tensor("pilora.0." + entry.name, entry.shape).to(at::kFloat));
  }
  const double rate = record["center_rate"], low_rank_rate = record["low_rank_rate"];
  train_job job{.net = net,
                .start = weights_only(official_low_rank(*net).to(at::kFloat)),
                .samples = rows_from(official_rows(record["labels"]), 0, 8),
                .objective = pilora_objective(*net, {}),
                .auxiliary = auxiliary};
  job.options = {.optimizer = optimizer_kind::adam,
                 .epochs = 2,
                 .batch_rows = 4,
                 .learning_rate = rate,
                 .weight_decay = 1e-5,
                 .in_order = true,
                 .classes = {0, 8}};
  job.options.trained_classes = {2, 4};
  job.options.rates = {{low_rank_vit::layers, low_rank_rate / rate}};
  job.observation = class_feature_observation(8);
  const std::vector<mneme::job> batch{{.request = job}};
  const auto outcome = make_executor("cpu")->run(batch)[0];
  const auto& flat = weights_of(outcome);
  for (const auto& [name, values] : record["learnt"]["weights"].items()) {
    INFO(name);
    const auto& entry = named_parameter(*net, name);
    CHECK(largest_difference_of(as_in_files(flat, entry), listed_tensor(values, entry.shape)) < 1e-5);
  }
  const auto& trained = std::get<train_output>(std::get<work_output>(outcome));
  const auto means =
      trained.observed->at(observed_feature_sums) / trained.observed->at(observed_class_rows).unsqueeze(1);
  for (const auto& [name, values] : record["learnt"]["means"].items()) {
    INFO("class " << name);
    CHECK(largest_difference_of(means[std::stoll(name)], listed_tensor(values, {16})) < 1e-5);
  }
  CHECK(trained.observed->at(observed_class_rows).sum().item<double>() == 16.0); // eight rows, two epochs
}

TEST_CASE("prototypes are weighted like the official code's", "[pilora][official]") {
  const auto theirs = golden_record("prompts/pilora")["weights"];
  const auto vectors = [](const std::string& kind, std::int64_t of_class, std::int64_t count) {
    std::vector<at::Tensor> rows;
    for (std::int64_t k = 0; k < count; ++k)
      rows.push_back(formula_tensor(fmt::format("pilora.{}.{}.{}", kind, of_class, k), {5}).to(at::kDouble));
    return at::stack(rows);
  };
  CHECK(largest_difference_of(center_weights(vectors("center", 0, 3), vectors("mean", 0, 3), 0.2),
                              listed_tensor(theirs[0], {3})) < 1e-9);
  CHECK(largest_difference_of(center_weights(vectors("center", 1, 3), vectors("mean", 1, 1), 0.2),
                              listed_tensor(theirs[1], {3})) < 1e-9);
  const auto line = at::tensor({1.0, 2.0, 4.0}, at::kDouble).unsqueeze(1), zero = at::zeros({1, 1}, at::kDouble);
  CHECK(largest_difference_of(center_weights(line, zero, 0.2), at::tensor({0.95931, 0.03422, 0.00646})) < 1e-5);
  const auto third = at::full({3}, 1.0 / 3.0, at::kDouble);
  CHECK(at::equal(center_weights(line, at::zeros({0, 1}, at::kDouble), 0.2), third));
  CHECK(at::equal(center_weights(at::ones({3, 1}, at::kDouble), zero, 0.2), third)); // equal weights, since S is zero
  CHECK(at::equal(center_weights(at::zeros({3, 1}, at::kDouble), zero, 0.2), third));
}

TEST_CASE("a round of PILoRA trains only the parts and prototypes of its task", "[pilora]") {
  const auto client = pilora_client();
  const auto server = client.method->make_server();
  const trained_task first(client, *server, 0), second(client, *server, 1);
  CHECK_FALSE(first.sent.extra);
  REQUIRE(second.sent.extra);
  CHECK(second.sent.extra->at("earlier").sizes() == at::IntArrayRef{2, 24});
  CHECK(second.sent.extra->at("earlier.lora.0.query.down").sizes() == at::IntArrayRef{4, 24});
  CHECK_FALSE(second.sent.weights->at("lora.0.query.up").any().item<bool>());
  for (const auto& [name, value] : *second.sent.weights) {
    INFO(name);
    CHECK(value.sizes() == second.upload->at(name).sizes());
    CHECK_FALSE(at::equal(value, second.upload->at(name)));
  }
  const auto centers = [&](const at::Tensor& flat) {
    return as_in_files(flat, named_parameter(*client.setup.net, "centers.weight"));
  };
  CHECK(at::equal(centers(first.evaluated).narrow(0, 0, 2), centers(second.evaluated).narrow(0, 0, 2)));
  CHECK(at::equal(centers(first.evaluated).narrow(0, 2, 2),
                  centers(client.setup.initial->at(flat_weights)).narrow(0, 2, 2)));
}

TEST_CASE("the evaluated net has the parts that strategy.evaluate selects", "[pilora]") {
  for (const std::string evaluate : {"sum", "first-plus-current", "released"}) {
    INFO(evaluate);
    const auto client = pilora_client({{"evaluate", evaluate}, {"low_rank_rate", "1000"}});
    const auto server = client.method->make_server();
    const trained_task first(client, *server, 0), second(client, *server, 1);
    const auto plain = queries_of(client, client.setup.initial->at(flat_weights));
    const auto& early = *first.upload;
    const auto& late = *second.upload;
    REQUIRE(product_of(early).abs().max().item<double>() > 1e-3); // each differs from a net without the part
    REQUIRE(product_of(late).abs().max().item<double>() > 1e-3);
    CHECK(largest_difference_of(queries_of(client, first.evaluated), plain + product_of(early)) < 1e-6);
    const auto expected = evaluate == "sum" ? plain + product_of(early) + product_of(late)
                          : evaluate == "released"
                              ? plain + product_of(early)
                              : plain + at::matmul(early.at("lora.0.query.up") + late.at("lora.0.query.up"),
                                                   early.at("lora.0.query.down") + late.at("lora.0.query.down"));
    CHECK(largest_difference_of(queries_of(client, second.evaluated), expected) < 1e-6);
  }
}

TEST_CASE("invalid settings of PILoRA are refused", "[pilora]") {
  CHECK(complaint([](method_setup&) {}).empty());
  CHECK(complaint([](method_setup& setup) {
          setup.net = model_named("linear", {1, 1, 5}, 4);
        }).starts_with("model.name: "));
  CHECK(complaint([](method_setup& setup) { setup.task_classes = {{0, 4}, {0, 4}}; }).starts_with("tasks.kind: "));
  CHECK(complaint([](method_setup& setup) { setup.old_model_share = 0.5; }).starts_with("strategy.old_model_share: "));
  CHECK(complaint([](method_setup& setup) {
          setup.transition = task_transition::staggered;
        }).starts_with("tasks.transition: tasks.transition = \"staggered\": parts and centers of earlier tasks"));
  CHECK(complaint([](method_setup& setup) { setup.keep_task_share = 0.5; }).starts_with("tasks.keep_task_share: "));
  CHECK(complaint([](method_setup& setup) { // low-rank adapters with their own rate
          setup.training.learning_rate = 0.0;
        })
            .starts_with("training.learning_rate: "));
}
