// Nets without a head, and losses of features and maps alone.
#include "runtime/models/function.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

const shape3 small{3, 10, 9};

/// The mean over rows of |features|^2 / 2, or of |map|^2 / 2 for the requested maps.
class shrinking_loss final : public loss {
public:
  std::string identity() const override { return "shrinking"; }
  bool reads_logits() const override { return false; }
  loss_output operator()(const loss_input& in) const override {
    CHECK_FALSE(in.logits.defined());
    const auto weight = in.row_weight.unsqueeze(2);
    loss_output out{.values = at::zeros({in.features.size(0)}, at::kDouble)};
    if (in.maps.empty()) {
      out.values += 0.5 * (in.features.square() * weight).sum({1, 2}, false, at::kDouble);
      out.d_features = (in.features * weight).contiguous();
    }
    for (const auto& map : in.maps)
      out.d_maps.push_back(map * weight.unsqueeze(3).unsqueeze(4));
    return out;
  }
};

model_ref headless(const std::string& name, const model_keys& keys = {}) {
  auto kind = kind_with(name, keys);
  kind->set_head(head_kind::none);
  return kind->build(small, 6).value();
}

std::vector<job> clients_of(const model_ref& net, const training_options& options,
                            const std::vector<std::int64_t>& rows = {7, 3, 4, 0, 7}) {
  const auto source = drawn_data(40, small, 6);
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = weights_only(initial_weights(*net, k)),
                                         .samples = rows_from(source, static_cast<std::int64_t>(k), rows[k]),
                                         .objective = std::make_shared<const shrinking_loss>(),
                                         .options = options,
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  return jobs;
}

outcomes run_all(const std::vector<job>& jobs) { return make_executor("cpu")->run(jobs); }
std::string refusal_of(train_job job) {
  return std::get<std::string>(run_all({{.id = {}, .request = std::move(job)}})[0]);
}

/// Gradient descent over all rows on the same loss, by autograd in float64: [P].
at::Tensor plainly_trained(const train_job& job) {
  const auto rows = reference_gather(*job.samples.source, *job.samples.rows, {}).unsqueeze(0).to(at::kDouble);
  auto flat = job.start->at(flat_weights).unsqueeze(0).to(at::kDouble);
  const training_mode mode;
  for (std::int64_t step = 0; step < job.options.epochs; ++step) {
    flat = flat.detach().set_requires_grad(true);
    const auto seen = job.net->differentiable(flat, rows, {}, {.training = &mode, .statistics = true});
    const auto value = 0.5 * seen.features.square().sum() / static_cast<double>(job.samples.size());
    const auto slope = torch::autograd::grad({value}, {flat})[0];
    flat = with_updated_running_stats(flat.detach() - job.options.learning_rate * slope, seen.statistics);
  }
  return flat[0];
}

} // namespace

TEST_CASE("a net without a head learns from a loss of its features, equal to autograd", "[headless]") {
  at::set_num_threads(1);
  for (const auto& net : {headless("mlp"), headless("resnet8", {{"norm", "group"}}), headless("resnet8")}) {
    INFO(net->identity());
    REQUIRE(net->classes() == 0);
    const auto jobs = clients_of(net, {.epochs = 3, .batch_rows = 0, .learning_rate = 0.02, .in_order = true}, {5});
    const auto expected = plainly_trained(std::get<train_job>(jobs[0].request)).to(at::kFloat);
    const auto found = weights_of(run_all(jobs)[0]);
    CHECK(largest_difference(found, std::get<train_job>(jobs[0].request).start->at(flat_weights)) > 1e-3);
    CHECK(largest_difference(found, expected) < 1e-5);
  }
}

TEST_CASE("clients without heads end with the same bits alone and fused", "[headless]") {
  at::set_num_threads(1);
  for (const auto& net : {headless("mlp"), headless("cnn"), headless("resnet8")})
    for (const double momentum : {0.0, 0.9}) {
      const auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 3, .momentum = momentum});
      const auto together = run_all(jobs);
      for (std::size_t k = 0; k < jobs.size(); ++k)
        CHECK(same_bits(weights_of(together[k]), weights_of(run_all({jobs[k]})[0])));
    }
}

TEST_CASE("layers after the last map of a loss stay unchanged", "[headless]") {
  at::set_num_threads(1);
  auto kind = kind_with("resnet8", {{"norm", "group"}});
  const auto with_head = kind->build(small, 6).value();
  for (const auto& net : {headless("resnet8", {{"norm", "group"}}), with_head})
    for (const double momentum : {0.0, 0.9}) {
      const auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 3, .momentum = momentum, .maps = {"layer1"}});
      const auto& start = std::get<train_job>(jobs[0].request).start->at(flat_weights);
      const auto after = weights_of(run_all(jobs)[0]);
      for (const auto& entry : net->layout()) {
        INFO(entry.name);
        const bool reached =
            entry.name.starts_with("conv1.") || entry.name.starts_with("bn1.") || entry.name.starts_with("layer1.");
        const auto part_of = [&](const at::Tensor& flat) { return flat.narrow(0, entry.offset, entry.size); };
        CHECK(same_bits(part_of(start), part_of(after)) != reached);
      }
    }
}

TEST_CASE("a loss of logits on a net without logits is refused with a reason", "[headless]") {
  const auto net = headless("mlp");
  auto job = std::get<train_job>(clients_of(net, {}, {3})[0].request);
  job.objective = nullptr;
  CHECK(refusal_of(job) == "the objective 'cross-entropy' reads logits, but there are none: the net '" +
                               net->identity() +
                               "' has no head; expected an objective of features and maps (loss::reads_logits)");
  job.options.classes = {0, 6};
  CHECK(refusal_of(job) == "classes 0 to 5 are requested, but the head of the net '" + net->identity() +
                               "' has 0; expected classes of the head, or none for an objective of features");
  const auto whole = net_of("mlp", small, 6);
  auto other = std::get<train_job>(clients_of(whole, {}, {3})[0].request);
  other.objective = nullptr;
  CHECK(refusal_of(other).find("the loss covers no class") != std::string::npos);
}
