// MOON: its loss compared with autograd, the models that a client is compared with, and settings without an effect.
#include "runtime/method/gradients.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 3, classes = 4;

struct client {
  std::unique_ptr<strategy> method = strategy_named("moon");
  std::unique_ptr<executor> device = make_executor("cpu");
  method_setup setup = setup_of_run(mlp_of({5}, features, classes), features, 2);

  explicit client(const key_list& keys = {}) {
    give_keys(*method, keys.pairs);
    setup.training = {.batch = 4, .learning_rate = 0.1};
    method->prepare(setup);
  }
  [[nodiscard]] assignment work(memory_ref memory = nullptr) const {
    broadcast in{.info = {.seen_classes = {0, classes}, .current_classes = {0, classes}}, .weights = setup.initial};
    return {.in = std::make_shared<const broadcast>(in),
            .memory = std::move(memory),
            .samples = view_of(striped_rows(8, features, classes), {0, 1, 2, 3, 4, 5}),
            .seed = 1};
  }
  [[nodiscard]] train_job job(memory_ref memory = nullptr) const {
    return jobs_of_kind<train_job>(jobs_of_round(*method, *device, work(std::move(memory)))).at(0);
  }
};

memory_ref previous(const client& learner, std::uint64_t seed) {
  auto made = std::make_shared<tensor_map>();
  made->put("previous", initial_weights(*learner.setup.net, seed));
  return made;
}

} // namespace

TEST_CASE("a client is compared with the received model and its own of the last round", "[moon]") {
  const client learner({{"mu", "2"}});
  const auto first = learner.job();
  CHECK(first.teachers.empty());
  CHECK(first.objective->identity() == cross_entropy_objective()->identity());

  const auto known = previous(learner, 9);
  const auto later = learner.job(known);
  CHECK(later.objective->identity() == "moon 2 0.5");
  CHECK(at::equal(later.teachers.at(0)->at(flat_weights), learner.setup.initial->at(flat_weights)));
  CHECK(at::equal(later.teachers.at(1)->at(flat_weights), known->at("previous")));
  const auto result = run_round(*learner.method, *learner.device, learner.work(known));
  CHECK(at::equal(result.memory->at("previous"), result.upload->at(flat_weights)));
  const auto alone = run_round(*learner.method, *learner.device, learner.work());
  CHECK_FALSE(at::allclose(result.upload->at(flat_weights), alone.upload->at(flat_weights), 1e-4, 1e-5));
}

TEST_CASE("the contrastive term and its gradient equal autograd in float64, without padding rows", "[moon]") {
  const client learner({{"mu", "3"}, {"temperature", "0.25"}});
  const auto objective = learner.job(previous(learner, 9)).objective;
  const auto logits = drawn({2, 4, 4}, 1), z = drawn({2, 4, 5}, 2), global = drawn({2, 4, 5}, 3);
  const auto before = drawn({2, 4, 5}, 4);
  const auto labels = at::tensor(std::vector<std::int64_t>{0, 1, 2, -1, 3, 2, 1, 0}, at::kLong).view({2, 4});
  const auto weight = floats({1.0F / 3, 1.0F / 3, 1.0F / 3, 0.0F, 0.25F, 0.25F, 0.25F, 0.25F}).view({2, 4});
  const auto found = (*objective)({.logits = logits,
                                   .features = z,
                                   .labels = labels,
                                   .row_weight = weight,
                                   .auxiliaries = {},
                                   .teachers = {{.features = global}, {.features = before}}});
  const auto plain = (*cross_entropy_objective())(
      {.logits = logits, .features = z, .labels = labels, .row_weight = weight, .auxiliaries = {}});
  CHECK(largest_difference(found.d_logits, plain.d_logits) < 1e-7);
  REQUIRE(found.terms.size() == 2);
  CHECK(std::string(found.terms[0].name) == "cross_entropy");
  CHECK(at::allclose(found.terms[0].value, plain.values, 1e-6));
  CHECK(std::string(found.terms[1].name) == "contrast");
  CHECK(at::allclose(found.terms[0].value + found.terms[1].value, found.values));
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto of_k = [&](const at::Tensor& shown) { return shown[k].to(at::kDouble); };
    const auto own = leaf_of(of_k(z));
    const auto near = at::cosine_similarity(own, of_k(global), 1) / 0.25;
    const auto far = at::cosine_similarity(own, of_k(before), 1) / 0.25;
    const auto term = (3.0 * of_k(weight) * -at::log(near.exp() / (near.exp() + far.exp()))).sum();
    CHECK_THAT(found.values[k].item<double>(), WithinRel(plain.values[k].item<double>() + term.item<double>(), 1e-6));
    CHECK((of_k(found.d_features) - gradients_of(term, {own}).front()).abs().max().item<double>() < 1e-6);
  }
}

TEST_CASE("a row with zero features has no direction and no gradient", "[moon]") {
  const client learner;
  const auto objective = learner.job(previous(learner, 9)).objective;
  const auto nothing = at::zeros({1, 1, 5}), some = drawn({1, 1, 5}, 3);
  const auto found = (*objective)({.logits = at::zeros({1, 1, 4}),
                                   .features = nothing,
                                   .labels = at::zeros({1, 1}, at::kLong),
                                   .row_weight = at::ones({1, 1}),
                                   .auxiliaries = {},
                                   .teachers = {{.features = some}, {.features = nothing}}});
  CHECK(at::equal(found.d_features, nothing));
  CHECK_THAT(found.values.item<double>(), WithinRel(std::log(4.0) + std::log(2.0), 1e-6));
}

TEST_CASE("nets whose features cannot change are refused", "[moon]") {
  client learner;
  CHECK(learner.method->check(learner.setup).empty());
  learner.setup.trainable = trainable_part::head;
  CHECK(learner.method->check(learner.setup).at(0).where == "model.trainable");
  const auto head = model_named("linear", {1, 1, features}, classes);
  CHECK(setup_error(*learner.method, head).find("consists of a head only") != std::string::npos);
}
