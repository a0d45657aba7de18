// convit: a transformer with task tokens, compared with the official code, and properties of its architecture.
#include "tests/support/nets.hpp"
#include "tests/support/small_convit.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

const std::vector<std::int64_t> task_sizes{3, 2};
constexpr std::int64_t image_count = 6;

at::Tensor made_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  return at::tensor(formula(name, c10::multiply_integers(shape))).view(shape);
}
at::Tensor listed_values(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble);
}
double apart(const at::Tensor& ours, const at::Tensor& theirs) {
  return (ours.to(at::kDouble).flatten() - theirs.to(at::kDouble).flatten()).abs().max().item<double>();
}
at::Tensor shown_images(std::int64_t models = 1, std::int64_t rows = image_count) {
  return made_tensor("dytox.images", {1, rows, 3, 12, 12}).expand({models, -1, -1, -1, -1}).contiguous();
}
const parameter& named(const model& net, const std::string& name) {
  for (const auto& entry : net.layout())
    if (entry.name == name)
      return entry;
  FAIL("no parameter is called " << name);
  return net.layout().front();
}

/// The script's gradient of one of our parameters; head rows are concatenated.
at::Tensor official_gradient(const nlohmann::json& gradients, const parameter& entry) {
  if (!entry.head)
    return listed_values(gradients[entry.name]);
  return at::cat({listed_values(gradients[entry.name + ".0"]), listed_values(gradients[entry.name + ".1"])});
}

struct trained_pass {
  at::Tensor logits, features, map, gradients;
};
/// A forward pass over all classes and a backward pass with the script's gradients.
trained_pass pass_of(const model& net, const at::Tensor& weights, const at::Tensor& images,
                     const training_mode* training = nullptr) {
  tape kept;
  kept.maps = {"divergence"};
  const auto models = images.size(0), rows = images.size(1);
  const auto outputs = net.forward(weights, images, {0, 5}, &kept, training);
  auto slopes = at::zeros({models, rows, 4, 1, 1});
  slopes.flatten(2).narrow(2, 0, 3).copy_(made_tensor("dytox.d_div", {image_count, 3}).narrow(0, 0, rows));
  kept.d_maps = {slopes};
  auto gradients = at::full(weights.sizes(), 7.0);
  net.backward(weights, kept, {0, 5},
               made_tensor("dytox.d_logits", {image_count, 5}).narrow(0, 0, rows).expand({models, -1, -1}), {}, {},
               {gradients});
  return {outputs.logits, outputs.features, outputs.maps.at(0), gradients};
}

} // namespace

TEST_CASE("the net equals the official code's", "[convit]") {
  const auto record = golden_record("dytox/official")["net"];
  const convit net(small_convit_shape(task_sizes));
  const auto flat = official_weights(net, task_sizes);
  const auto weights = flat.unsqueeze(0).clone().requires_grad_(true);
  const auto results = net.differentiable(weights, shown_images().to(at::kDouble), {0, 5}, {});
  CHECK(apart(results.logits, listed_values(record["logits"])) < 1e-12);
  CHECK(apart(results.features, listed_values(record["features"])) < 1e-12);
  CHECK(apart(results.maps.at(0).values.flatten(2).narrow(2, 0, 3), listed_values(record["div"])) < 1e-12);

  const auto shown = results.maps[0].values[0].flatten(1).narrow(1, 0, 3);
  const auto ends = (results.logits[0] * made_tensor("dytox.d_logits", {image_count, 5})).sum() +
                    (shown * made_tensor("dytox.d_div", {image_count, 3})).sum();
  const auto slopes = torch::autograd::grad({ends}, {weights})[0][0];
  const auto single = pass_of(net, flat.to(at::kFloat).unsqueeze(0), shown_images());
  CHECK(apart(single.logits, listed_values(record["logits"])) < 1e-5);
  CHECK(apart(single.features, listed_values(record["features"])) < 1e-5);
  for (const auto& entry : net.layout()) {
    INFO(entry.name);
    const auto theirs = official_gradient(record["gradients"], entry);
    const auto count = theirs.numel();
    CHECK(apart(as_in_files(slopes, entry).flatten().narrow(0, 0, count), theirs) < 1e-11);
    CHECK(apart(as_in_files(single.gradients[0], entry).flatten().narrow(0, 0, count), theirs) <
          1e-5 * std::max(theirs.abs().max().item<double>(), 1.0));
  }
}

TEST_CASE("gates, values and positions are initialized like the official code's", "[convit]") {
  const auto record = golden_record("dytox/official");
  auto shape = small_convit_shape(task_sizes);
  shape.width = 24;
  shape.heads = 12;
  const convit net(shape);
  const auto flat = initial_weights(net, 3);
  const auto first = [&](const std::string& part) { return as_in_files(flat, named(net, "blocks.0.attn." + part)); };
  CHECK(apart(first("pos_proj.weight").narrow(0, 0, 9), listed_values(record["local_directions"])) == 0.0);
  CHECK(first("pos_proj.weight").narrow(0, 9, 3).abs().max().item<float>() < 0.1F); // random
  CHECK(apart(first("v.weight"), at::eye(24)) == 0.0);
  CHECK(record["values_are_tokens"] == true);
  CHECK(apart(first("gating_param"), listed_values(record["gate"])) == 0.0);
  CHECK_THAT(at::sigmoid(first("gating_param"))[0].item<double>(), WithinAbs(0.731059, 1e-6));
}

TEST_CASE("the number of parameters is the paper's", "[convit]") {
  const auto size_for = [](std::int64_t tasks, std::int64_t classes, bool divergence) {
    convit_shape shape{.input = {3, 32, 32}, .divergence = divergence};
    for (std::int64_t k = 0; k < tasks; ++k)
      shape.tasks.push_back({k * classes, (k + 1) * classes});
    return convit(shape).size();
  };
  CHECK(size_for(1, 10, false) == 10'688'566);
  CHECK(size_for(10, 10, false) == 10'733'584);
  CHECK(size_for(2, 10, false) - size_for(1, 10, false) == 5'002);
  CHECK(size_for(2, 5, false) - size_for(1, 5, false) == 3'077);
  CHECK(size_for(2, 20, false) - size_for(1, 20, false) == 8'852);
  CHECK(size_for(2, 10, true) - size_for(2, 10, false) == 5'003);
  const convit net({.input = {3, 32, 32}, .tasks = {{0, 10}}});
  std::int64_t block = 0, decoder = 0;
  for (const auto& entry : net.layout()) {
    block += entry.name.starts_with("blocks.3.") ? entry.size : 0;
    decoder += entry.name.starts_with("decoder.") ? entry.size : 0;
  }
  CHECK(block == 1'773'372);
  CHECK(decoder == 1'773'312);
}

TEST_CASE("task tokens do not affect each other", "[convit]") {
  const convit net(small_convit_shape(task_sizes));
  const auto weights = official_weights(net, task_sizes).to(at::kFloat).unsqueeze(0);
  const auto before = net.forward(weights, shown_images(), {0, 5}, nullptr, nullptr);
  auto moved = weights.clone();
  net.token_of(moved[0], 1).add_(at::linspace(0.0, 0.5, 8)); // differs by channel
  const auto after = net.forward(moved, shown_images(), {0, 5}, nullptr, nullptr);
  CHECK(at::equal(before.logits.narrow(2, 0, 3), after.logits.narrow(2, 0, 3)));
  CHECK((before.logits.narrow(2, 3, 2) - after.logits.narrow(2, 3, 2)).abs().min().item<float>() > 0.0F);
  net.token_of(moved[0], 1).copy_(net.token_of(moved[0], 0));
  const auto equal = net.forward(moved, shown_images(), {}, nullptr, nullptr).features[0];
  CHECK(apart(equal.narrow(1, 0, 8), equal.narrow(1, 8, 8)) < 1e-6);
}

TEST_CASE("attention over equal patches returns one of them for any gate, since its rows sum to 1", "[convit]") {
  auto shape = small_convit_shape(task_sizes);
  shape.depth = 1;
  const convit net(shape);
  auto weights = official_weights(net, task_sizes).to(at::kFloat);
  put_as_in_files(weights, named(net, "pos_embed"), at::zeros({9, 8}));
  const auto image = at::full({1, 1, 3, 12, 12}, 0.3F);
  const auto logits = [&](float gate) {
    put_as_in_files(weights, named(net, "blocks.0.attn.gating_param"), at::full({4}, gate));
    return net.forward(weights.unsqueeze(0), image, {0, 5}, nullptr, nullptr).logits;
  };
  CHECK(apart(logits(-3.0F), logits(4.0F)) < 1e-6);
}

TEST_CASE("a pass computes only the tasks of its classes and returns zeros for the others", "[convit]") {
  const convit net(small_convit_shape({3, 2, 4}));
  const auto weights = initial_weights(net, 5).unsqueeze(0);
  const auto whole = net.forward(weights, shown_images(), {0, 9}, nullptr, nullptr);
  const auto early = net.forward(weights, shown_images(), {0, 3}, nullptr, nullptr);
  CHECK(apart(early.logits, whole.logits.narrow(2, 0, 3)) < 1e-6); // matrix products of different width
  CHECK(apart(early.features.narrow(2, 0, 8), whole.features.narrow(2, 0, 8)) < 1e-6);
  CHECK(early.features.narrow(2, 8, 16).abs().max().item<float>() == 0.0F);
  const auto inner = net.forward(weights, shown_images(), {4, 7}, nullptr, nullptr); // of the second and the third task
  CHECK(apart(inner.logits, whole.logits.narrow(2, 4, 3)) < 1e-6);
}

TEST_CASE("a row does not depend on other rows, nor do its bits on other models", "[convit]") {
  auto shape = small_convit_shape(task_sizes);
  shape.drop_path = 0.4;
  const convit net(shape);
  const auto weights = at::stack({initial_weights(net, 5), initial_weights(net, 6), initial_weights(net, 7)});
  const auto images = shown_images(1, 37);
  const auto many = net.forward(weights.narrow(0, 0, 1), images, {0, 5}, nullptr, nullptr).logits;
  for (const std::int64_t rows : {1, 5, 16, 20}) {
    const auto few =
        net.forward(weights.narrow(0, 0, 1), images.narrow(1, 0, rows).contiguous(), {0, 5}, nullptr, nullptr);
    CHECK(apart(few.logits, many.narrow(1, 0, rows)) < 1e-6); // matrix products of different width
  }
  const std::vector<rng_key> keys{{.seed = 1}, {.seed = 2}, {.seed = 3}};
  const training_mode together{keys};
  const auto stacked = pass_of(net, weights, shown_images(3), &together);
  for (std::int64_t k = 0; k < 3; ++k) {
    const training_mode own{std::span(keys).subspan(static_cast<std::size_t>(k), 1)};
    const auto alone = pass_of(net, weights.narrow(0, k, 1), shown_images(), &own);
    CHECK(same_bits(alone.gradients[0].contiguous(), stacked.gradients[k].contiguous()));
    CHECK(same_bits(alone.logits[0].contiguous(), stacked.logits[k].contiguous()));
  }
}

TEST_CASE("drop path applies in training, by the stream, to blocks that are trained", "[convit]") {
  auto shape = small_convit_shape(task_sizes);
  shape.drop_path = 0.5;
  const convit net(shape);
  const auto weights = initial_weights(net, 5).unsqueeze(0);
  const auto logits = [&](std::uint64_t seed, const parameter_choice* trained) {
    const std::vector<rng_key> keys{{.seed = seed}};
    const training_mode training{keys, trained};
    tape kept;
    return net.forward(weights, shown_images(), {0, 5}, &kept, &training).logits;
  };
  tape kept;
  const auto still = net.forward(weights, shown_images(), {0, 5}, &kept, nullptr).logits;
  CHECK(at::equal(logits(1, nullptr), logits(1, nullptr)));
  CHECK_FALSE(at::equal(logits(1, nullptr), logits(2, nullptr)));
  CHECK_FALSE(at::equal(logits(1, nullptr), still));
  const auto head = parameter_choice::layers_of(net, {"head"});
  CHECK(at::equal(logits(1, &head), still));
  const auto moving = head.with_statistics(net);
  CHECK(at::equal(logits(1, &moving), logits(1, nullptr)));
  CHECK(net.uses_random_numbers());
}

TEST_CASE("untrained parameters have no gradient", "[convit]") {
  const convit net(small_convit_shape(task_sizes));
  const auto weights = initial_weights(net, 5).unsqueeze(0);
  auto chosen = parameter_choice::layers_of(net, {"decoder", "task_tokens.1", "head"});
  const training_mode training{{}, &chosen};
  tape kept;
  (void)net.forward(weights, shown_images(), {0, 5}, &kept, &training);
  auto gradients = at::full(weights.sizes(), 7.0);
  net.backward(weights, kept, {0, 5}, at::ones({1, image_count, 5}), {}, chosen, {gradients});
  for (std::size_t i = 0; i < net.layout().size(); ++i) {
    INFO(net.layout()[i].name);
    const auto own = as_in_files(gradients[0], net.layout()[i]);
    CHECK((own == 7.0).all().item<bool>() == !chosen.changes(net, i));
  }
}

TEST_CASE("images and heads that do not fit are refused", "[convit]") {
  const auto refusal = [](const model_keys& keys, shape3 images) {
    const auto net = kind_with("convit", keys)->build(images, 4);
    REQUIRE_FALSE(net);
    return net.error();
  };
  CHECK(refusal({{"patch", "5"}}, {3, 12, 12}) == "convit cannot cut images of 12 x 12 pixels into patches of 5; "
                                                  "model.patch must divide both");
  CHECK(refusal({{"width", "10"}, {"heads", "4"}}, {3, 12, 12}) ==
        "convit cannot split a width of 10 evenly over 4 heads; model.heads must divide model.width");
  auto kind = kind_with("convit", {});
  kind->set_head(head_kind::cosine);
  CHECK_FALSE(kind->build({3, 12, 12}, 4));
}

TEST_CASE("tasks with the same classes share one token", "[convit]") {
  const auto tokens_for = [](const std::vector<class_range>& tasks, std::int64_t classes) {
    auto kind = kind_with("convit", {{"width", "8"}, {"heads", "2"}, {"depth", "1"}});
    kind->set_tasks(tasks);
    const auto net = kind->build({3, 12, 12}, classes).value();
    return dynamic_cast<const convit&>(*net).tasks();
  };
  CHECK(tokens_for({{0, 2}, {2, 6}}, 6) == 2);
  CHECK(tokens_for({{0, 6}, {0, 6}}, 6) == 1);
  CHECK(tokens_for({}, 6) == 1);
}
