// Losses that read intermediate maps of a net.
#include "runtime/models/function.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/reference_gather.hpp"
#include "tests/support/training_clients.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Cross-entropy plus, over rows and maps, the mean of sum |map - the teacher's|^2 * weight, model by model.
class map_loss final : public loss {
public:
  explicit map_loss(double weight) : weight_(weight) {}
  std::string identity() const override { return "maps"; }
  loss_output operator()(const loss_input& in) const override {
    auto out = (*cross_entropy_objective())(in);
    for (std::size_t m = 0; m < in.maps.size(); ++m) {
      const auto apart = in.maps[m] - in.teachers[0].maps[m];
      out.d_maps.push_back(apart * (2.0 * weight_) * in.row_weight.unsqueeze(2).unsqueeze(3).unsqueeze(4));
    }
    return out;
  }

private:
  double weight_;
};

/// Clients whose objective compares maps with those of a teacher.
std::vector<job> teacher_jobs_of(const model_ref& net, const training_options& options,
                                 const std::vector<std::int64_t>& rows = ragged) {
  auto jobs = clients_of(net, options, rows);
  for (std::uint64_t k = 0; k < jobs.size(); ++k) {
    auto& training = std::get<train_job>(jobs[k].request);
    training.objective = std::make_shared<const map_loss>(0.05);
    training.add_teacher(weights_only(initial_weights(*net, 20 + k % 2)), {.features = true});
  }
  return jobs;
}

at::Tensor gradients_of(const job& queued) {
  const auto outcome = run_all({queued})[0];
  if (const auto* reason = std::get_if<std::string>(&outcome))
    FAIL("job failed: " << *reason);
  return std::get<train_output>(std::get<work_output>(outcome)).gradients;
}

/// The same gradient by autograd through the net as a function, in float64.
at::Tensor plain_gradient(const train_job& job, double weight) {
  const auto& net = *job.net;
  const auto rows = reference_gather(*job.samples.source, *job.samples.rows, {}).unsqueeze(0).to(at::kDouble);
  const training_mode mode;
  const function_mode as_trained{.training = job.options.evaluation ? nullptr : &mode};
  const auto flat = job.start->at(flat_weights).unsqueeze(0).to(at::kDouble).set_requires_grad(true);
  const auto taught =
      net.differentiable(job.teachers[0]->at(flat_weights).unsqueeze(0).to(at::kDouble), rows, {0, 6}, {});
  const auto seen = net.differentiable(flat, rows, {0, 6}, as_trained);
  std::vector<std::int64_t> labels;
  for (const auto row : *job.samples.rows)
    labels.push_back(job.samples.source->label(row));
  auto loss = at::cross_entropy_loss(seen.logits[0], at::tensor(labels, at::kLong));
  for (std::size_t m = 0; m < seen.maps.size(); ++m)
    for (const auto& name : job.options.maps)
      if (seen.maps[m].name == name)
        loss = loss + weight * (seen.maps[m].values - taught.maps[m].values).square().sum() /
                          static_cast<double>(job.samples.size());
  return torch::autograd::grad({loss}, {flat})[0][0].to(at::kFloat);
}

} // namespace

TEST_CASE("losses of maps have autograd's gradients", "[maps]") {
  at::set_num_threads(1);
  const auto check = [](const model_ref& net, const std::vector<std::string>& maps, bool evaluation) {
    INFO(net->identity());
    auto jobs = teacher_jobs_of(net,
                                {.batch_rows = 0,
                                 .in_order = true,
                                 .maps = maps,
                                 .result = training_result::gradient,
                                 .evaluation = evaluation},
                                {5});
    auto& job = std::get<train_job>(jobs[0].request);
    const auto expected = plain_gradient(job, 0.05);
    const auto bound = 1e-4 * expected.abs().max().item<double>();
    for (const auto& piece : trained_segments(*net, {0, 6}))
      CHECK(largest_difference(gradients_of(jobs[0]).narrow(0, piece.offset, piece.size).contiguous(),
                               expected.narrow(0, piece.offset, piece.size).contiguous()) < bound);
    job.options.maps.clear();
    CHECK(largest_difference(gradients_of(jobs[0]).contiguous(), expected) > 10 * bound);
  };
  for (const bool evaluation : {false, true}) {
    check(net_of("resnet8", small, 6, {{"norm", "group"}}), {"layer1", "layer3"}, evaluation);
    check(net_of("resnet8", small, 6), {"layer2"}, evaluation);
    check(mlp_of({21, 9}, 270, 6), {"fc2", "fc1"}, evaluation);
  }
  check(net_of("cnn", small, 6), {"conv2", "conv1"}, true); // in another order
}

TEST_CASE("clients whose losses read maps end with the same bits alone and fused", "[maps]") {
  at::set_num_threads(1);
  for (const auto& net : {net_of("resnet8", small, 6), net_of("cnn", small, 6)}) {
    const auto names = net->maps();
    const auto jobs = teacher_jobs_of(net, {.epochs = 2, .batch_rows = 3, .maps = names});
    const auto together = run_all(jobs);
    for (std::size_t k = 0; k < jobs.size(); ++k)
      CHECK(same_bits(weights_of(together[k]), weights_of(run_all({jobs[k]})[0])));
  }
}

TEST_CASE("an unknown map is refused by name", "[maps]") {
  const auto refusal = [](const model_ref& net) {
    return std::get<std::string>(run_all(teacher_jobs_of(net, {.maps = {"layer9"}}, {3}))[0]);
  };
  CHECK(refusal(net_of("resnet8", small, 6)).find("has no map 'layer9'; expected names of: ") != std::string::npos);
  CHECK(refusal(net_of("linear", small, 6)) ==
        "the net 'linear 270-6' has no map 'layer9'; expected names of: none, it has no maps");
}
