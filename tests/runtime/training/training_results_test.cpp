// Gradients as results of a training job, and outputs of teachers.
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/reference_gather.hpp"
#include "tests/support/training_clients.hpp"
#include <ATen/Parallel.h>
#include <catch2/catch_approx.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

train_output output_of(const job_outcome& outcome) {
  if (const auto* reason = std::get_if<std::string>(&outcome))
    FAIL("job failed: " << *reason);
  return std::get<train_output>(std::get<work_output>(outcome));
}
train_job& training_of(job& queued) { return std::get<train_job>(queued.request); }

/// d sum_i weight_i CE_i
/// d weights [P] in float64, of a net of two linear layers.
at::Tensor plain_gradient(const train_job& job, const std::vector<std::int64_t>& positions,
                          const std::vector<double>& weights) {
  std::vector<std::int64_t> rows, labels;
  for (const auto position : positions) {
    rows.push_back((*job.samples.rows)[static_cast<std::size_t>(position)]);
    labels.push_back(job.samples.source->label(rows.back()));
  }
  const auto flat = job.start->at(flat_weights).to(at::kDouble).set_requires_grad(true);
  std::vector<at::Tensor> parts;
  for (const auto& entry : job.net->layout())
    parts.push_back(flat.narrow(0, entry.offset, entry.size).view(entry.shape));
  const auto x = reference_gather(*job.samples.source, rows, {}).flatten(1).to(at::kDouble);
  const auto logits = at::linear(at::relu(at::linear(x, parts[0], parts[1])), parts[2], parts[3]);
  const auto losses = at::cross_entropy_loss(logits, at::tensor(labels, at::kLong), {}, at::Reduction::None);
  (losses * at::tensor(weights, at::kDouble)).sum().backward();
  return flat.grad();
}

std::vector<std::int64_t> first_positions(std::int64_t from, std::int64_t count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), from);
  return positions;
}

/// Cross-entropy that records the teacher's outputs.
class noting_loss final : public loss {
public:
  std::string identity() const override { return "noting"; }
  loss_output operator()(const loss_input& in) const override {
    features = in.features.clone();
    logits = in.logits.clone();
    const auto shown = in.teachers.empty() ? activations{} : in.teachers[0];
    teacher_features = shown.features.defined() ? shown.features.clone() : at::Tensor{};
    taught = shown.logits.defined() ? shown.logits.clone() : at::Tensor{};
    return (*cross_entropy_objective())(in);
  }
  mutable at::Tensor features, logits, teacher_features, taught;
};

/// Cross-entropy plus the mean over rows of |features - the teacher's|^2.
class matching_loss final : public loss {
public:
  std::string identity() const override { return "matching"; }
  loss_output operator()(const loss_input& in) const override {
    auto out = (*cross_entropy_objective())(in);
    const auto apart = in.features - in.teachers[0].features, weight = in.row_weight.unsqueeze(2);
    out.values = out.values + (apart.square() * weight).sum({1, 2}, false, at::kDouble);
    out.d_features = 2.0 * apart * weight;
    return out;
  }
};

} // namespace

TEST_CASE("the gradient of all rows equals autograd's in float64, for any batch size", "[training results]") {
  at::set_num_threads(1);
  const auto net = mlp_of({21}, 270, 6);
  for (const std::int64_t batch : {0, 3, 7}) {
    auto jobs = clients_of(net, {.batch_rows = batch, .result = training_result::gradient}, {7});
    auto& job = training_of(jobs[0]);
    const auto check = [&](const std::vector<double>& weights) {
      const auto out = output_of(run_all(jobs)[0]);
      CHECK_FALSE(out.weights);
      CHECK(largest_difference(out.gradients.contiguous(),
                               plain_gradient(job, first_positions(0, 7), weights).to(at::kFloat)) < 1e-6);
    };
    check(std::vector<double>(7, 1.0 / 7.0));
    job.annotations.weights =
        std::make_shared<const std::vector<float>>(std::vector<float>{1, 0.5F, 2, 0, 1, 3, 0.25F});
    check({1.0 / 7, 0.5 / 7, 2.0 / 7, 0.0, 1.0 / 7, 3.0 / 7, 0.25 / 7});
  }
}

TEST_CASE("squared gradients are means over steps; with batches of one, over rows", "[training results]") {
  at::set_num_threads(1);
  const auto net = mlp_of({21}, 270, 6);
  for (const std::int64_t batch : {1, 3}) {
    const auto jobs =
        clients_of(net, {.batch_rows = batch, .in_order = true, .result = training_result::squared_gradients}, {7});
    const auto& job = std::get<train_job>(jobs[0].request);
    auto expected = at::zeros({net->size()}, at::kDouble);
    const auto steps = (7 + batch - 1) / batch;
    for (std::int64_t s = 0; s < steps; ++s) {
      const auto count = std::min(batch, 7 - s * batch);
      expected += plain_gradient(job, first_positions(s * batch, count),
                                 std::vector<double>(static_cast<std::size_t>(count), 1.0 / static_cast<double>(count)))
                      .square();
    }
    expected = (expected / steps).to(at::kFloat);
    CHECK(largest_difference(output_of(run_all(jobs)[0]).gradients.contiguous(), expected) <
          1e-5 * expected.max().item<double>());
  }
}

TEST_CASE("norms of per-row gradients are in row order and equal autograd's", "[training results]") {
  at::set_num_threads(1);
  const auto net = mlp_of({21}, 270, 6);
  auto jobs = clients_of(net, {.batch_rows = 4, .result = training_result::row_norms}, {7});
  auto& job = training_of(jobs[0]);
  const auto norms = [&] { return output_of(run_all(jobs)[0]).row_norms; };
  const auto seen = norms();
  REQUIRE(seen.sizes() == at::IntArrayRef{7});
  for (std::int64_t i = 0; i < 7; ++i)
    CHECK(seen[i].item<double>() == Approx(plain_gradient(job, {i}, {1.0}).norm().item<double>()).epsilon(1e-5));
  // The gradient norms of a head alone have a closed form: |softmax - onehot| sqrt(|h|^2 + 1).
  job.options.trained = trainable_part::head;
  const auto of_head = norms();
  const auto& rows = *job.samples.rows;
  const auto shown = net->forward(job.start->at(flat_weights).unsqueeze(0),
                                  reference_gather(*job.samples.source, rows, {}).unsqueeze(0), {0, 6}, nullptr);
  for (std::int64_t i = 0; i < 7; ++i) {
    auto residue = at::softmax(shown.logits[0][i], 0);
    residue[job.samples.source->label(rows[static_cast<std::size_t>(i)])] -= 1;
    const double expected =
        residue.norm().item<double>() * std::sqrt(shown.features[0][i].square().sum().item<double>() + 1.0);
    CHECK(of_head[i].item<double>() == Approx(expected).epsilon(1e-5));
  }
  job.annotations.weights = std::make_shared<const std::vector<float>>(7, 0.5F);
  CHECK(at::allclose(norms(), of_head * 0.5));
}

TEST_CASE("gradients of every kind have the same bits alone and fused", "[training results]") {
  at::set_num_threads(1);
  for (const auto result : {training_result::gradient, training_result::squared_gradients, training_result::row_norms})
    for (const auto& net : {mlp_of({21}, 270, 6), net_of("cnn", small, 6), net_of("resnet8", small, 6)}) {
      INFO(net->identity() << ", result " << static_cast<int>(result));
      const auto jobs = clients_of(net, {.batch_rows = 3, .result = result}, ragged);
      const auto together = run_all(jobs);
      const auto values = [](const job_outcome& outcome) {
        const auto out = output_of(outcome);
        return (out.gradients.defined() ? out.gradients : out.row_norms).contiguous();
      };
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        CHECK(same_bits(values(together[k]), values(run_all({jobs[k]})[0])));
        CHECK((values(together[k]).abs().sum().item<double>() > 0) == (ragged[k] > 0));
        CHECK(output_of(together[k]).rows_seen == ragged[k]);
      }
    }
}

TEST_CASE("gradient norms of a net with batch norms are computed in evaluation mode", "[training results]") {
  at::set_num_threads(1);
  const auto net = net_of("resnet8", small, 6);
  auto jobs = clients_of(net, {.batch_rows = 1, .in_order = true, .result = training_result::row_norms}, {4});
  const auto norms = output_of(run_all(jobs)[0]).row_norms;
  auto& job = training_of(jobs[0]);
  for (std::int64_t i = 0; i < 4; ++i) { // the gradient of each row, by a separate job
    auto single = jobs;
    training_of(single[0]).samples = rows_from(job.samples.source, i, 1);
    training_of(single[0]).options.result = training_result::gradient;
    training_of(single[0]).options.evaluation = true;
    CHECK(norms[i].item<double>() ==
          Approx(output_of(run_all(single)[0]).gradients.to(at::kDouble).norm().item<double>()).epsilon(1e-5));
    training_of(single[0]).options.evaluation = false;
    CHECK(norms[i].item<double>() !=
          Approx(output_of(run_all(single)[0]).gradients.to(at::kDouble).norm().item<double>()).epsilon(1e-3));
  }
}

TEST_CASE("gradients over several passes, with replayed rows, or with NaN are refused", "[training results]") {
  const auto net = mlp_of({21}, 270, 6);
  auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 3, .result = training_result::gradient}, {7});
  const auto refusal = [&] { return std::get<std::string>(run_all(jobs)[0]); };
  CHECK(refusal() == "gradients are taken in one pass over the rows; expected epochs = 1, not 2");
  auto& job = training_of(jobs[0]);
  job.options.epochs = 1;
  job.options.replay_rows = 2;
  job.replay.samples = job.samples;
  CHECK(refusal() == "gradients are computed from one set of rows, but rows to replay are given; expected none");
  job.replay = {};
  auto broken = job.start->at(flat_weights).clone();
  broken[0] = std::numeric_limits<float>::quiet_NaN();
  job.start = weights_only(broken);
  CHECK(refusal() == "there are no gradients: fc1.weight holds values that are NaN or infinite; the weights that they "
                     "are taken at, or the 7 rows, hold such values");
}

TEST_CASE("a loss reads its teacher's features and logits of the same rows", "[training results]") {
  at::set_num_threads(1);
  for (const auto& net : {mlp_of({21}, 270, 6), net_of("resnet8", small, 6)}) {
    auto jobs = clients_of(net, {.batch_rows = 0, .in_order = true}, {4});
    auto& job = training_of(jobs[0]);
    const auto noted = std::make_shared<noting_loss>();
    job.objective = noted;
    job.add_teacher(weights_only(initial_weights(*net, 9)), {});
    const auto rows = reference_gather(*job.samples.source, *job.samples.rows, {}).unsqueeze(0);
    const auto expected = net->forward(job.teachers[0]->at(flat_weights).unsqueeze(0), rows, {0, 4}, nullptr);
    (void)output_of(run_all(jobs)[0]);
    CHECK_FALSE(noted->taught.defined());
    CHECK_FALSE(noted->teacher_features.defined());
    job.options.teachers = {{.features = true}};
    (void)output_of(run_all(jobs)[0]);
    CHECK_FALSE(noted->taught.defined());
    CHECK(largest_difference(noted->teacher_features.contiguous(), expected.features.contiguous()) < 1e-5);
    CHECK(largest_difference(noted->features.contiguous(), expected.features.contiguous()) > 1e-2);
    job.options.teachers = {{.classes = {0, 4}, .features = true}};
    (void)output_of(run_all(jobs)[0]);
    CHECK(largest_difference(noted->taught.contiguous(), expected.logits.contiguous()) < 1e-5);
    CHECK(largest_difference(noted->teacher_features.contiguous(), expected.features.contiguous()) < 1e-5);
  }
}

TEST_CASE("matching features of one or several teachers fuses to the same bits", "[training results]") {
  at::set_num_threads(1);
  for (const auto& net : {mlp_of({21}, 270, 6), net_of("cnn", small, 6), net_of("resnet8", small, 6)}) {
    auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 3}, ragged);
    const auto shared = weights_only(initial_weights(*net, 9));
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      training_of(jobs[k]).add_teacher(k % 2 == 0 ? shared : weights_only(initial_weights(*net, 10 + k)),
                                       {.features = true});
      training_of(jobs[k]).objective = std::make_shared<const matching_loss>();
    }
    const auto together = run_all(jobs);
    for (std::size_t k = 0; k < jobs.size(); ++k)
      CHECK(same_bits(weights_of(together[k]), weights_of(run_all({jobs[k]})[0])));
    // The features approach the teacher's.
    auto unmatched = jobs;
    for (auto& queued : unmatched)
      training_of(queued).objective = nullptr;
    CHECK_FALSE(same_bits(weights_of(together[0]), weights_of(run_all(unmatched)[0])));
  }
}
