#include "runtime/base/triangle.hpp"
#include "runtime/models/embedding_model.hpp"
#include "runtime/training/inference.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/reference_algebra.hpp"
#include <catch2/catch_approx.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

image_store on_cpu() { return image_store(at::kCPU); }

/// Four rows whose two pixels are the logits of two classes, because the net is a linear identity.
struct hand_made {
  std::shared_ptr<dataset> source = std::make_shared<dataset>();
  model_ref net = net_of("linear", {1, 1, 3}, 3);
  tensors_ref weights;
  hand_made() {
    source->images = at::tensor(std::vector<int>{2, 0, 1, 0, 3, 0, 5, 5, 0, 1, 2, 3}).to(at::kByte).view({4, 1, 1, 3});
    source->labels = {0, 1, 1, 2};
    source->transforms.resize(1);
    source->scale = {1.0F};
    source->shift = {0.0F};
    auto flat = at::zeros({12});
    flat.narrow(0, 0, 9).view({3, 3}).copy_(at::eye(3));
    weights = weights_only(flat);
  }
};

} // namespace

TEST_CASE("in an evaluation ties go to the first class, and classes outside the mask are wrong", "[passes]") {
  const hand_made made;
  auto images = on_cpu();
  const auto over = [&](class_range mask) {
    return run_inference(
        evaluate_job{.learned = {made.net, made.weights}, .samples = rows_from(made.source, 0, 4), .mask = mask},
        images);
  };
  const auto whole = over({0, 3}); // logits 2 0 1 -> 0, right; 0 3 0 -> 1, right; 5 5 0 -> 0, wrong; 1 2 3 -> 2, right
  CHECK(whole.rows == 4);
  CHECK(whole.correct == 3);
  const double e = std::exp(1.0);
  const double expected = std::log(1 + std::exp(-2.0) + 1 / e) + std::log(1 + 2 * std::exp(-3.0)) +
                          std::log(2 + std::exp(-5.0)) + std::log(1 + 1 / e + std::exp(-2.0));
  CHECK(whole.loss_sum == Approx(expected).epsilon(1e-12));
  const auto first_two = over({0, 2});
  CHECK(first_two.rows == 4);
  CHECK(first_two.correct == 2); // row 3 is of class 2
  CHECK(first_two.loss_sum ==
        Approx(std::log(1 + std::exp(-2.0)) + std::log(1 + std::exp(-3.0)) + std::log(2.0)).epsilon(1e-12));
  const auto last_two = over({1, 3}); // 0 1 | 3 0 -> 1, right | 5 0 -> 1, right | 2 3 -> 2, right
  CHECK(last_two.correct == 3);
}

TEST_CASE("extraction gives features, logits of all classes and labels in row order", "[passes]") {
  const auto source = drawn_data(300, {1, 1, 12}, 5); // more than two blocks
  const auto net = mlp_of({7}, 12, 5);
  const auto weights = weights_only(initial_weights(*net, 2));
  auto images = on_cpu();
  auto job = extract_job{.net = net, .weights = weights, .samples = rows_from(source, 0, 300)};
  const auto whole = run_inference(job, images);
  CHECK(whole.features.sizes() == at::IntArrayRef{300, 7});
  CHECK(whole.logits.sizes() == at::IntArrayRef{300, 5});
  for (const std::int64_t row : {0, 127, 128, 299}) {
    job.samples = rows_from(source, row, 1);
    const auto alone = run_inference(job, images);
    CHECK(same_bits(alone.features[0], whole.features[row]));
    CHECK(same_bits(alone.logits[0], whole.logits[row]));
    CHECK(whole.labels[row].item<std::int64_t>() == row % 5);
  }
  job.net = net_of("identity", {1, 1, 12}, 5);
  job.weights = weights_only(at::zeros({0}));
  const auto pixels = run_inference(job, images);
  CHECK(pixels.features.sizes() == at::IntArrayRef{1, 12});
  CHECK_FALSE(pixels.logits.defined());
}

TEST_CASE("statistics equal Eigen's sums in double, with and without a projection", "[passes]") {
  const std::int64_t rows = 700; // more than a block of the Gram matrix
  const auto source = drawn_data(rows, {1, 1, 12}, 5);
  auto images = on_cpu();
  const auto net = net_of("identity", {1, 1, 12}, 5);
  const auto nothing = weights_only(at::zeros({0}));
  const auto x = matrix_of(
      run_inference(extract_job{.net = net, .weights = nothing, .samples = rows_from(source, 0, rows)}, images)
          .features);
  const auto projection = drawn_matrix(12, 30, 1);
  for (const bool projected : {false, true}) {
    const matrix h = projected ? matrix((x * projection).cwiseMax(0.0)) : x;
    const auto got = run_inference(statistics_job{.net = net,
                                                  .weights = nothing,
                                                  .samples = rows_from(source, 0, rows),
                                                  .projection = projected ? tensor_of(projection) : at::Tensor{},
                                                  .classes = {0, 5}},
                                   images);
    matrix one_hot = matrix::Zero(rows, 5); // row r has label r % 5
    for (std::int64_t row = 0; row < rows; ++row)
      one_hot(row, row % 5) = 1.0;
    CHECK(relative_difference(square(got.gram, h.cols()), gram_of(h)) < 1e-13);
    CHECK(relative_difference(got.sums[0], one_hot.transpose() * h) < 1e-13);
    CHECK(got.counts.equal(at::full({1, 5}, 140.0, at::kDouble)));
  }
  const auto means_only = run_inference(
      statistics_job{
          .net = net, .weights = nothing, .samples = rows_from(source, 0, 3), .gram = false, .classes = {0, 5}},
      images);
  CHECK_FALSE(means_only.gram.defined());
  CHECK(means_only.counts.sum().item<double>() == 3.0);
}

TEST_CASE("a pass over no rows has empty results", "[passes]") {
  const hand_made made;
  auto images = on_cpu();
  const sample_view none;
  CHECK(
      run_inference(evaluate_job{.learned = {made.net, made.weights}, .samples = none, .mask = {0, 3}}, images).rows ==
      0);
  const auto nothing = run_inference(extract_job{.net = made.net, .weights = made.weights, .samples = none}, images);
  CHECK(nothing.features.sizes() == at::IntArrayRef{0, 3});
  const auto sums = run_inference(
      statistics_job{.net = made.net, .weights = made.weights, .samples = none, .classes = {0, 3}}, images);
  CHECK(square(sums.gram, 3).equal(at::zeros({3, 3}, at::kDouble)));
}

TEST_CASE("evaluating a net after its frozen front equals evaluating the whole, on means or keyed samples",
          "[passes]") {
  const auto source = drawn_data(300, {1, 1, 12}, 5);
  embedding_shape shape{.hidden = {9}, .embedding = 4, .classifier = {6}};
  const auto net = std::make_shared<const embedding_model>(shape, shape3{1, 1, 12}, 5);
  const auto flat = initial_weights(*net, 2);
  auto other_classifier = flat.clone(); // only the parameters before it matter
  other_classifier.narrow(0, net->encoder()->size(), net->classifier()->size()).fill_(7.0F);
  auto images = on_cpu();
  const auto judged = [&](const predictor& learned, std::int64_t first, std::int64_t count, feature_store* store) {
    return run_inference(evaluate_job{.learned = learned, .samples = rows_from(source, first, count), .mask = {0, 5}},
                         images, store);
  };
  const predictor whole{.net = net, .weights = weights_only(flat)};
  auto parted = whole;
  parted.classifier = classifier_stage{
      .net = net->classifier(), .front_net = net, .front = weights_only(other_classifier), .reads = shape.embedding};
  feature_store store;
  const auto at_once = judged(whole, 0, 300, nullptr);
  for (int again = 0; again < 2; ++again) {
    const auto in_parts = judged(parted, 0, 300, &store);
    CHECK(in_parts.correct == at_once.correct);
    CHECK(in_parts.loss_sum == at_once.loss_sum);
  }
  parted.classifier->sampled =
      sampled_features{.stream = {.seed = 1, .purpose = first_method_purpose}, .low = -6, .high = 3};
  const auto drawn = judged(parted, 0, 300, &store);
  CHECK(drawn.loss_sum != at_once.loss_sum);
  CHECK(judged(parted, 0, 140, nullptr).correct + judged(parted, 140, 160, &store).correct == drawn.correct);
  parted.classifier->sampled->stream.seed = 2;
  CHECK(judged(parted, 0, 300, &store).loss_sum != drawn.loss_sum);
}
