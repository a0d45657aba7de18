// Outputs of frozen nets are computed once per row, with the bits of computing them in every step.
#include "runtime/models/image_layers.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/tensors.hpp"
#include "tests/support/wrapped_model.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t pixels = 20, classes = 4;
const shape3 pictures{16, 8, 8}; // whole vectors of channels: bits do not depend on the number of rows

/// Two blocks with batch norms and dropout before the features, and one after them.
std::shared_ptr<const network> split_net() {
  network_builder net("front and head", shape3{1, 1, pixels});
  const auto add_block = [&](const std::string& name, std::int64_t width) {
    net.add_linear(name + ".fc", width, activation::none);
    net.add_normalization(name + ".bn", 0, activation::relu);
    net.add_dropout(0.25);
  };
  add_block("front.a", 17);
  const auto first = net.cursor();
  add_block("front.b", 17);
  net.add_sum(first, activation::none);
  net.mark_features();
  add_block("back", 9);
  net.add_head("back.head", classes);
  return net.build();
}

/// Convolutions, one of them with a shortcut, and pooling before the features, and a block after them.
std::shared_ptr<const network> split_image_net() {
  network_builder net("images and head", pictures);
  add_convolution(net, "front.a", {.filters = 16, .padding = 1});
  net.add_normalization("front.bn", 0, activation::relu);
  const auto first = net.cursor();
  add_convolution(net, "front.b", {.filters = 16, .padding = 1}); // one that uses Winograd
  net.add_sum(first, activation::relu);
  add_max_pool(net, 2, 2, 0);
  add_mean_pool(net);
  net.mark_features();
  net.add_linear("back.fc", 9, activation::relu);
  net.add_head("back.head", classes);
  return net.build();
}

/// The same net without a declaration of how it treats rows.
class silent_net final : public wrapped_model {
public:
  using wrapped_model::wrapped_model;
  bool uses_random_numbers() const noexcept override { return true; }
  bool couples_batch_rows() const noexcept override { return true; }
};

/// Cross-entropy, and rows of the first two classes are regularized towards the teacher's outputs.
class compares_first_classes final : public loss {
public:
  std::string identity() const override { return "compares first classes"; }
  loss_output operator()(const loss_input& in) const override {
    auto out = (*cross_entropy_objective())(in);
    const auto weight = (in.row_weight * (in.labels >= 0).logical_and(in.labels < 2)).unsqueeze(2); // [K, B, 1]
    out.d_logits = out.d_logits + (in.logits - in.teachers[0].logits) * weight;
    if (in.teachers[0].features.defined())
      out.d_features = (in.features - in.teachers[0].features) * weight;
    return out;
  }
};

/// Clients with 11, 12, 13 and 150 rows; the last one's exceed a block.
std::vector<job> clients(const model_ref& net, const shape3& shape, const std::vector<std::string>& layers,
                         bool taught) {
  const auto source = drawn_data(200, shape, classes);
  std::vector<job> jobs;
  for (std::uint32_t k = 0; k < 4; ++k) {
    const auto moved = [&](std::uint64_t seed) {
      return weights_only(initial_weights(*net, seed) + 0.1 * drawn({net->size()}, seed + 50).abs());
    };
    train_job made{.net = net, .start = moved(3 + k / 2), .samples = rows_from(source, 5 * k, k < 3 ? 11 + k : 150)};
    made.options = {.epochs = 2,
                    .batch_rows = 8,
                    .learning_rate = 0.1,
                    .momentum = 0.9,
                    .clip_norm = 1.0,
                    .trained = trainable_part::layers,
                    .layers = layers,
                    .classes = {0, classes}};
    if (taught) {
      made.objective = std::make_shared<compares_first_classes>();
      made.add_teacher(moved(20 + k % 2), {.classes = {0, classes}, .features = true, .only_labels = {0, 2}});
    }
    made.stream = {.seed = 1, .client = {k}};
    jobs.push_back({.id = {{k}, 0, 0}, .request = std::move(made)});
  }
  return jobs;
}

/// Clients whose weights differ at the end if the net does not declare that it treats rows separately.
std::int64_t differing(const std::shared_ptr<const network>& net, const shape3& shape,
                       const std::vector<std::string>& layers, bool taught) {
  const auto device = make_executor("cpu");
  const auto kept = clients(net, shape, layers, taught);
  const auto anew = clients(std::make_shared<silent_net>(net), shape, layers, taught);
  const auto ours = device->run(kept), theirs = device->run(anew);
  std::int64_t different = 0;
  for (std::size_t k = 0; k < ours.size(); ++k) {
    const auto& made = weights_of(ours[k]);
    CHECK_FALSE(at::equal(made, std::get<train_job>(kept[k].request).start->at(flat_weights)));
    const auto loss_of = [&](const job_outcome& outcome) {
      return std::get<train_output>(std::get<work_output>(outcome)).loss_mean;
    };
    different += !at::equal(made, weights_of(theirs[k])) || loss_of(ours[k]) != loss_of(theirs[k]);
  }
  return different;
}

} // namespace

TEST_CASE("training skips the frozen front only if everything up to the features is frozen", "[training]") {
  const auto net = split_net();
  const auto begins = [&](const std::vector<std::string>& layers) {
    return net->trains_after_features(parameter_choice::layers_of(*net, layers));
  };
  CHECK(begins({"back"}));
  CHECK_FALSE(begins({"front"}));
  CHECK_FALSE(begins({"front.b", "back"}));
  CHECK_FALSE(net->trains_after_features({}));
  const auto images = split_image_net();
  CHECK(images->trains_after_features(parameter_choice::head_of(*images)));
}

TEST_CASE("a net declares whether a row's bits depend on the number of rows, up to features or logits", "[training]") {
  const auto depends = [](const network& net) {
    return std::pair{net.depends_on_row_count({}), net.depends_on_row_count({0, classes})};
  };
  CHECK(depends(*split_net()) == std::pair{false, false});
  CHECK(depends(*split_image_net()) == std::pair{false, false});
  network_builder cosines("a product of LibTorch", {1, 1, pixels});
  cosines.add_linear("fc", 5, activation::relu);
  cosines.add_head("head", classes, {.kind = head_kind::cosine});
  CHECK(depends(*cosines.build()) == std::pair{false, true});
}

TEST_CASE("training a head on cached features gives the bits of running the front in each step", "[training]") {
  CHECK(differing(split_net(), {1, 1, pixels}, {"back"}, false) == 0);
  CHECK(differing(split_image_net(), pictures, {"back"}, false) == 0);
}

TEST_CASE("caching a teacher's outputs gives the bits of computing them in each step", "[training]") {
  for (const auto& layers : {std::vector<std::string>{"back"}, {"front"}, {"front", "back"}}) {
    CHECK(differing(split_net(), {1, 1, pixels}, layers, true) == 0);
    CHECK(differing(split_image_net(), pictures, layers, true) == 0);
  }
}
