// Trained and untrained parts of a net.
#include "runtime/models/frozen_parameters.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/reference_gather.hpp"
#include "tests/support/training_clients.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Options that train a part of a net.
training_options with_part(training_options options, trainable_part part, std::vector<std::string> layers = {}) {
  options.trained = part;
  options.layers = std::move(layers);
  return options;
}

/// Checks that exactly the selected parameters change, and that clients alone and fused end with the same bits.
void check_part(const model_ref& net, const training_options& options) {
  INFO(net->identity());
  const auto jobs = clients_of(net, options);
  const auto choice = trained_parameters(*net, options.trained, options.layers);
  const auto together = run_all(jobs);
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    INFO("client " << k);
    const auto& job = std::get<train_job>(jobs[k].request);
    const auto &before = job.start->at(flat_weights), &after = weights_of(together[k]);
    CHECK(same_bits(after, weights_of(run_all({jobs[k]})[0])));
    for (std::size_t i = 0; i < net->layout().size(); ++i) {
      const auto& entry = net->layout()[i];
      INFO(entry.name);
      const auto part_of = [&](const at::Tensor& flat) { return flat.narrow(0, entry.offset, entry.size); };
      CHECK(same_bits(part_of(before), part_of(after)) == !(choice.changes(*net, i) && job.samples.size() > 0));
    }
  }
}

/// Two linear layers with a ReLU, trained in row order with SGD in float64; `trained` selects from the four tensors.
at::Tensor plainly_trained(const train_job& job, const std::array<bool, 4>& trained) {
  const auto& options = job.options;
  auto flat = job.start->at(flat_weights).to(at::kDouble);
  auto momentum = at::zeros_like(flat);
  for (std::int64_t first = 0; first < job.samples.size(); first += options.batch_rows) {
    const auto count = std::min(options.batch_rows, job.samples.size() - first);
    const auto rows =
        std::span(*job.samples.rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    std::vector<std::int64_t> labels;
    for (const auto row : rows)
      labels.push_back(job.samples.source->label(row));
    const auto x = reference_gather(*job.samples.source, rows, {}).flatten(1).to(at::kDouble);
    flat = flat.detach().set_requires_grad(true);
    std::vector<at::Tensor> parts;
    for (const auto& entry : job.net->layout())
      parts.push_back(flat.narrow(0, entry.offset, entry.size).view(entry.shape));
    const auto logits = at::linear(at::relu(at::linear(x, parts[0], parts[1])), parts[2], parts[3]);
    at::cross_entropy_loss(logits, at::tensor(labels, at::kLong)).backward();
    const auto gradient = flat.grad();
    flat = flat.detach().clone();
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& entry = job.net->layout()[i];
      const auto own = [&](const at::Tensor& whole) { return whole.narrow(0, entry.offset, entry.size); };
      own(momentum).mul_(options.momentum).add_(own(gradient)).add_(own(flat), options.weight_decay);
      if (trained[i])
        own(flat).sub_(own(momentum), options.learning_rate);
    }
  }
  return flat.to(at::kFloat);
}

} // namespace

TEST_CASE("untrained parts keep every bit and their running statistics, fused and alone", "[trained part]") {
  at::set_num_threads(1);
  for (const auto& base :
       {training_options{.epochs = 2, .batch_rows = 4},
        training_options{.batch_rows = 3, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1.0},
        training_options{.optimizer = optimizer_kind::adamw, .batch_rows = 4, .weight_decay = 0.1}}) {
    for (const auto part : {trainable_part::head, trainable_part::body}) {
      check_part(net_of("resnet8", small, 6), with_part(base, part));
      check_part(net_of("resnet8", small, 6, {{"norm", "group"}}), with_part(base, part));
      check_part(net_of("cnn", small, 6), with_part(base, part));
      check_part(mlp_of({21}, 270, 6), with_part(base, part));
    }
    check_part(net_of("resnet8", small, 6), with_part(base, trainable_part::layers, {"layer2"}));
    check_part(net_of("resnet8", small, 6), with_part(base, trainable_part::layers, {"layer3.0.bn1", "conv1"}));
    check_part(net_of("cnn", small, 6), with_part(base, trainable_part::layers, {"fc1"}));
    check_part(mlp_of({21, 9}, 270, 6), with_part(base, trainable_part::layers, {"fc1", "fc3"}));
  }
  // Means and log deviations come from one product.
  check_part(net_of("vee", {1, 1, 270}, 6), with_part({.batch_rows = 4}, trainable_part::layers, {"encoder.mu"}));
}

TEST_CASE("training a part equals autograd in float64, with direct steps and with an optimizer", "[trained part]") {
  at::set_num_threads(1);
  const auto net = mlp_of({21}, 270, 6);
  for (const auto& base :
       {training_options{.batch_rows = 4, .in_order = true},
        training_options{.batch_rows = 4, .momentum = 0.9, .weight_decay = 0.05, .in_order = true}}) {
    const auto check = [&](const training_options& options, const std::array<bool, 4>& trained) {
      const auto jobs = clients_of(net, options, {23});
      CHECK(largest_difference(weights_of(run_all(jobs)[0]).clone(),
                               plainly_trained(std::get<train_job>(jobs[0].request), trained)) < 2e-6);
    };
    check(with_part(base, trainable_part::body), {true, true, false, false});
    check(with_part(base, trainable_part::layers, {"fc1"}), {true, true, false, false});
    check(with_part(base, trainable_part::layers, {"fc2"}), {false, false, true, true});
    check(with_part(base, trainable_part::layers, {"fc2", "fc1"}), {true, true, true, true});
    check(with_part(base, trainable_part::head), {false, false, true, true});
  }
}

TEST_CASE("selecting all layers equals selecting none, and selecting the head equals trainable = head",
          "[trained part]") {
  at::set_num_threads(1);
  const auto net = net_of("cnn", small, 6);
  const training_options base{.batch_rows = 4, .momentum = 0.9};
  const auto after = [&](const training_options& options) {
    return weights_of(run_all(clients_of(net, options, {7}))[0]).clone();
  };
  CHECK(same_bits(after(base), after(with_part(base, trainable_part::layers, {"conv1", "conv2", "fc1", "fc2"}))));
  CHECK(
      same_bits(after(with_part(base, trainable_part::head)), after(with_part(base, trainable_part::layers, {"fc2"}))));
}

TEST_CASE("dropout applies only after trained layers", "[trained part]") {
  at::set_num_threads(1);
  const auto net = net_of("cnn", small, 6); // has dropout after its convolutions and after fc1
  const auto draws = [&](const std::vector<std::string>& layers) {
    auto jobs = clients_of(net, with_part({.batch_rows = 0}, trainable_part::layers, layers), {7});
    const auto first = weights_of(run_all(jobs)[0]).clone();
    std::get<train_job>(jobs[0].request).stream.visit = 9;
    return largest_difference(first, weights_of(run_all(jobs)[0])) > 1e-5;
  };
  CHECK_FALSE(draws({"fc2"}));
  CHECK(draws({"fc1"}));
  CHECK(draws({"conv2"}));
  CHECK_FALSE(draws({"conv1"})); // its pixels are read by conv2, which is not trained
}

TEST_CASE("in evaluation mode all parts train without dropout and with fixed running statistics", "[trained part]") {
  at::set_num_threads(1);
  const auto residual = net_of("resnet8", small, 6), dropping = net_of("cnn", small, 6);
  for (const auto& net : {residual, dropping}) {
    auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 4, .evaluation = true});
    const auto together = run_all(jobs);
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      CHECK(same_bits(weights_of(together[k]), weights_of(run_all({jobs[k]})[0])));
      const auto& before = std::get<train_job>(jobs[k].request).start->at(flat_weights);
      for (const auto& entry : net->layout())
        if (entry.buffer)
          CHECK(same_bits(before.narrow(0, entry.offset, entry.size),
                          weights_of(together[k]).narrow(0, entry.offset, entry.size)));
    }
    CHECK_FALSE(same_bits(weights_of(together[0]), std::get<train_job>(jobs[0].request).start->at(flat_weights)));
  }
  auto jobs = clients_of(dropping, {.batch_rows = 0, .evaluation = true}, {7});
  const auto first = weights_of(run_all(jobs)[0]).clone();
  std::get<train_job>(jobs[0].request).stream.visit = 9;
  CHECK(largest_difference(first, weights_of(run_all(jobs)[0])) < 1e-6);
}

TEST_CASE("an unknown part is refused by name", "[trained part]") {
  const auto refusal = [](const model_ref& net, const training_options& options) {
    return std::get<std::string>(run_all(clients_of(net, options, {7}))[0]);
  };
  const auto net = mlp_of({21}, 270, 6);
  CHECK(refusal(net, with_part({}, trainable_part::layers, {"fc3"})) ==
        "the net 'mlp 270-21-6' has no layer 'fc3' that could be trained; expected names of: fc1, fc2");
  CHECK(refusal(net, with_part({}, trainable_part::layers)) ==
        "training of named layers is requested, but none is named; expected at least one name");
  CHECK(refusal(net_of("linear", small, 6), with_part({}, trainable_part::body)) ==
        "the net 'linear 270-6' consists of a head only, so it has no body to train");
}

TEST_CASE("head rows of held classes keep their bits under every optimizer") {
  auto kind = kind_with("mlp", {});
  kind->set_head(head_kind::cosine);
  for (const auto& net : {kind->build(small, 6).value(), net_of("mlp", small, 6)})
    for (const double momentum : {0.0, 0.9}) {
      INFO(net->identity() << ", momentum " << momentum);
      training_options options{.epochs = 2, .batch_rows = 4, .learning_rate = 0.1, .momentum = momentum};
      options.weight_decay = momentum > 0.0 ? 0.01 : 0.0;
      options.held_classes = 4;
      const auto jobs = clients_of(net, options, {7, 3});
      const auto together = run_all(jobs);
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        const auto& before = std::get<train_job>(jobs[k].request).start->at(flat_weights);
        const auto& after = weights_of(together[k]);
        CHECK(same_bits(after, weights_of(run_all({jobs[k]})[0])));
        for (const auto& entry : net->layout()) {
          INFO(entry.name);
          const auto row = entry.size / entry.shape[0];
          const auto held = entry.head && !entry.whole ? 4 * row : 0;
          CHECK(same_bits(before.narrow(0, entry.offset, held), after.narrow(0, entry.offset, held)));
          CHECK_FALSE(same_bits(before.narrow(0, entry.offset + held, entry.size - held),
                                after.narrow(0, entry.offset + held, entry.size - held)));
        }
      }
    }
}

TEST_CASE("holding all classes leaves no class to learn") {
  training_options options{.epochs = 1, .batch_rows = 4};
  options.held_classes = 6;
  const auto failed = run_all(clients_of(net_of("mlp", small, 6), options, {3}));
  REQUIRE(std::holds_alternative<std::string>(failed[0]));
  CHECK(std::get<std::string>(failed[0]).find("expected a class after them") != std::string::npos);
}

TEST_CASE("parameters in model.frozen keep every bit and the others train, fused and alone", "[trained part]") {
  at::set_num_threads(1);
  for (const auto& base : {training_options{.epochs = 2, .batch_rows = 4}, // gradients are applied to weights directly
                           training_options{.batch_rows = 3, .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1.0},
                           training_options{.optimizer = optimizer_kind::adam, .batch_rows = 4, .weight_decay = 0.1}}) {
    const auto resnet = net_of("resnet8", small, 6);
    check_part(with_frozen(resnet, {"conv1.weight", "layer2.0.bn1.bias", "fc.bias"}).value(), base);
    check_part(with_frozen(resnet, {"bn1", "layer1", "*.running_*"}).value(), base);
    check_part(with_frozen(resnet, {"*bn*.weight", "*bn*.bias", "*.weight"}).value(), base);
    check_part(with_frozen(resnet, {"fc.bias", "layer3"}).value(), with_part(base, trainable_part::head));
    check_part(with_frozen(mlp_of({21, 9}, 270, 6), {"fc2.weight", "fc1.bias"}).value(), base);
    check_part(with_frozen(net_of("cnn", small, 6), {"conv2", "fc1.bias"}).value(), base);
  }
}

TEST_CASE("training a net with frozen parameters equals autograd in float64", "[trained part]") {
  at::set_num_threads(1);
  for (const auto& base :
       {training_options{.batch_rows = 4, .in_order = true},
        training_options{.batch_rows = 4, .momentum = 0.9, .weight_decay = 0.05, .in_order = true}}) {
    const auto check = [&](const std::vector<std::string>& frozen, const std::array<bool, 4>& trained) {
      const auto net = with_frozen(mlp_of({21}, 270, 6), frozen).value();
      const auto jobs = clients_of(net, base, {23});
      CHECK(largest_difference(weights_of(run_all(jobs)[0]).clone(),
                               plainly_trained(std::get<train_job>(jobs[0].request), trained)) < 2e-6);
    };
    check({"fc1.weight"}, {false, true, true, true});
    check({"fc1.bias", "fc2.weight"}, {true, false, false, true});
    check({"fc2"}, {true, true, false, false});
  }
}

TEST_CASE("frozen weights of a batch norm do not change its mode, frozen statistics do", "[trained part]") {
  at::set_num_threads(1);
  const auto net = net_of("resnet8", small, 6);
  const auto moves = [&](const std::vector<std::string>& frozen) {
    const auto held = with_frozen(net, frozen).value();
    const auto jobs = clients_of(held, {.batch_rows = 4}, {7});
    const auto& start = std::get<train_job>(jobs[0].request).start->at(flat_weights);
    const auto after = weights_of(run_all(jobs)[0]).clone();
    for (const auto& entry : held->layout())
      if (entry.name == "bn1.running_mean")
        return !same_bits(start.narrow(0, entry.offset, entry.size), after.narrow(0, entry.offset, entry.size));
    return false;
  };
  CHECK(moves({"bn1.weight", "bn1.bias"}));
  CHECK_FALSE(moves({"bn1"}));
  CHECK_FALSE(moves({"bn1.running_*"}));
}
