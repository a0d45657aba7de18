// The reported training loss, worked out by hand for one row with one feature.
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/training_clients.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

/// x = 1 with label 0, from zero weights: the first step changes w and b of class 0 by rate / 2 and those of class 1 by
/// -rate / 2, so that at a rate of 1 the logits are 1 and -1.
train_output after(std::int64_t epochs, loss_ref objective, double momentum = 0.0) {
  auto source = std::make_shared<dataset>();
  source->images = at::full({1, 1, 1, 1}, 255, at::kByte);
  source->labels = {0};
  source->transforms.resize(1);
  source->scale = {1.0F / 255.0F};
  source->shift = {0.0F};
  const auto net = net_of("linear", {1, 1, 1}, 2);
  const std::vector<job> jobs{
      {.id = {{1}, 0, 0},
       .request =
           train_job{.net = net,
                     .start = weights_only(at::zeros({net->size()})),
                     .samples = rows_from(source, 0, 1),
                     .objective = std::move(objective),
                     .options = {.epochs = epochs, .learning_rate = 1.0, .momentum = momentum, .classes = {0, 2}},
                     .stream = {.seed = 1}}}};
  const auto results = run_all(jobs);
  const auto* const output = std::get_if<work_output>(&results.at(0));
  REQUIRE(output);
  return std::get<train_output>(*output);
}

const double first = std::log(2.0), second = std::log1p(std::exp(-2.0));

} // namespace

TEST_CASE("a training's loss is the mean of its last epoch, before each step", "[training_loss]") {
  const auto once = after(1, nullptr), twice = after(2, nullptr);
  CHECK_THAT(once.loss_mean, WithinAbs(first, 1e-7));
  CHECK_THAT(twice.loss_mean, WithinAbs(second, 1e-6));
  REQUIRE(twice.loss_terms().size() == 1);
  CHECK(twice.loss_terms().at("cross_entropy") == twice.loss_mean);
  const auto in_step = after(2, nullptr, 0.5); // momentum uses another code path with the same numbers
  CHECK_THAT(in_step.loss_mean, WithinAbs(second, 1e-6));
  CHECK(in_step.loss_terms() == std::map<std::string, double>{{"cross_entropy", in_step.loss_mean}});
  const auto none = after(0, nullptr); // virtual time of an epoch, but no training
  CHECK(none.loss_mean == 0.0);
  CHECK(none.loss_terms().empty());
}

TEST_CASE("the proximal term is part of the loss, with its factor", "[training_loss]") {
  const auto once = after(1, proximal_objective(0.5));
  CHECK_THAT(once.loss_mean, WithinAbs(first, 1e-7));
  CHECK(once.loss_terms().at("proximal") == 0.0); // no weight has changed
  const auto twice = after(2, proximal_objective(0.5));
  CHECK_THAT(twice.loss_terms().at("cross_entropy"), WithinAbs(second, 1e-6));
  CHECK_THAT(twice.loss_terms().at("proximal"), WithinAbs(0.25, 1e-7)); // 0.5 / 2 * 4 * 0.5^2
  CHECK_THAT(twice.loss_mean, WithinAbs(second + 0.25, 1e-6));
}

TEST_CASE("an objective without named terms has one term, the loss", "[training_loss]") {
  class nameless final : public loss {
  public:
    std::string identity() const override { return "nameless"; }
    loss_output operator()(const loss_input& in) const override { return (*cross_entropy_objective())(in); }
  };
  const auto once = after(1, std::make_shared<nameless>());
  CHECK(once.loss_terms() == std::map<std::string, double>{{"loss", once.loss_mean}});
}

TEST_CASE("half a squared distance is summed over all elements", "[training_loss]") {
  const auto a = at::arange(21, at::kFloat), b = at::zeros({21}); // more than one vector
  CHECK(half_square_distance(a, b, 0.5).item<double>() == 0.25 * 2870.0);
}
