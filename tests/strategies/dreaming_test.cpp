// Programs of a method in one file; conformance_test.cpp tests its conformance.
#include "tests/support/generator_method.hpp" // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

const shape3 small_images{3, 8, 8};
constexpr std::int64_t classes = 4;

model_ref residual_net() { return model_named("resnet8", small_images, classes); }

program_job generator_job(const program_ref& body, const model_ref& net, std::uint64_t seed) {
  const conditional_generator generator(small_images, classes);
  auto in = std::make_shared<tensor_map>();
  in->put(flat_weights, initial_weights(*net, seed % 3));
  in->put("generator", generator.initial({.seed = seed, .purpose = first_method_purpose}));
  return {.body = body, .in = in, .stream = {.seed = seed, .purpose = first_method_purpose + 1}};
}

} // namespace

TEST_CASE("generators trained through stacked nets have the bits of one trained alone") {
  const auto net = residual_net();
  const auto body = std::make_shared<const generator_training>(net, conditional_generator(small_images, classes), 6);
  std::vector<program_job> wanted;
  for (std::uint64_t k = 0; k < 8; ++k)
    wanted.push_back(generator_job(body, net, k));
  check_program(wanted, {2, 3, 8});
}

TEST_CASE("client weights refined in a stack have the bits of those refined alone") {
  const auto net = residual_net();
  const auto source = drawn_data(40, small_images, classes);
  const auto body = std::make_shared<const polishing>(net, 4);
  std::vector<program_job> wanted;
  for (std::uint64_t k = 0; k < 8; ++k)
    wanted.push_back({.body = body,
                      .in = weights_only(initial_weights(*net, k)),
                      .samples = rows_from(source, static_cast<std::int64_t>(k), 1 + static_cast<std::int64_t>(k))});
  check_program(wanted, {2, 3, 8});
}

TEST_CASE("a generator learns images that the net recognizes, with its batch statistics") {
  const auto net = residual_net();
  const conditional_generator generator(small_images, classes);
  const auto body = std::make_shared<const generator_training>(net, generator, 12);
  const auto job = generator_job(body, net, 5);
  const auto made = run_by_width({job}, 1);

  /// Cross-entropy and distance of batch statistics of twelve images.
  const auto objective = [&](const at::Tensor& flat) {
    const auto images = generator.images(flat.unsqueeze(0), generator.codes(12, {.seed = 99}).unsqueeze(0));
    const auto seen = net->differentiable(job.in->at(flat_weights).unsqueeze(0), images, {0, classes},
                                          {.training = nullptr, .statistics = true});
    auto loss = summed_loss(seen.logits, generator.labels(12).unsqueeze(0)).item<double>() / 12;
    REQUIRE(seen.statistics.size() == 7); // the stem's, and two of each of three blocks
    for (const auto& layer : seen.statistics)
      loss += (layer.mean - layer.running_mean).square().sum().item<double>() +
              (layer.variance - layer.running_variance).square().sum().item<double>();
    return loss;
  };
  const auto before = objective(job.in->at("generator")), after = objective(tensors_of(made[0]).at("generator"));
  INFO(before << " -> " << after);
  CHECK(after < 0.99 * before);
}
