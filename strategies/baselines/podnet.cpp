// PODNet: A. Douillard, M. Cord, C. Ollion, T. Robert and E. Valle, "PODNet: Pooled Outputs Distillation for
// Small-Tasks Incremental Learning", ECCV 2020. The pooled maps of all stages and the final features of the previous
// model are distilled; each class has ten proxies. With g = sqrt(n / s), n classes seen and s new ones:
//     L = NCA(z, y) + flat g (1 - cos(x, x~)) + spatial g mean over stages of |u - v|  (proxy_rehearsal.hpp).
// In the first task, only the NCA term is used. Head rows of old classes are frozen. After a task, the whole head is
// tuned on equally many rows of each class. In the paper's NCA, the margin applies to the correct class only, and that
// class is left out of the sum.
//
// Official code (inclearn): the margin has no effect in its NCA, because it cancels (nca_rows). New proxies start at
// k-means centers. Every gradient element is clamped to [-5, 5].
//
// Ours: federated as described in rehearsal.hpp, with the official NCA. The head is tuned in the last round of a task,
// with the rest of the net in evaluation mode. The server draws new proxies, as in PyCIL: k-means centers of different
// clients do not correspond, so their mean is meaningless. Gradients are not clamped (training.clip_norm limits their
// length). A ResNet-18 has four stages.
#include "strategies/baselines/proxy_rehearsal.hpp"
#include <ATen/TensorOperators.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme::podnet_method {
namespace {

struct options {
  double flat = 1.0, spatial = 3.0;
};

/// Returns PODNet's loss. @param growth the ratio n / s
loss_ref podnet_objective(const options& options, double growth) {
  return differentiable_objective({.identity = fmt::format("podnet {} {} {}", options.flat, options.spatial, growth),
                                   .terms = {"nca", "flat_distillation", "spatial_distillation"},
                                   .reads_features = true},
                                  [options, g = std::sqrt(growth)](const loss_rows& in) {
                                    const auto& teacher = in.teachers[0];
                                    const auto stages = static_cast<double>(in.maps.size());
                                    std::vector<at::Tensor> terms{nca_rows(in.logits, in.labels), {}, {}};
                                    if (options.flat > 0.0)
                                      terms[1] =
                                          (1.0 - cosine_rows(in.features, teacher.features)) * (options.flat * g);
                                    for (std::size_t m = 0; options.spatial > 0.0 && m < in.maps.size(); ++m) {
                                      const auto stage =
                                          pooled_map_rows(in.maps[m], teacher.maps[m]) * (options.spatial * g / stages);
                                      terms[2] = terms[2].defined() ? terms[2] + stage : stage;
                                    }
                                    return terms;
                                  });
}

class podnet final : public proxy_rehearsal {
public:
  void keys(key_table& table) override {
    table.number("flat", options_.flat, {.low = 0.0}, "Weight of the distillation of final features.");
    table.number("spatial", options_.spatial, {.low = 0.0}, "Weight of the distillation of pooled maps.");
    proxy_keys(table);
    memory_keys(table);
    readout_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"cosine\"\n"
                                 "momentum = 0.9\nweight_decay = 5e-4\naugment = \"crop-flip-jitter\"\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and PODNet's weights for "
                        "classification by the largest logit",
             .toml = training},
            {.name = "official",
             .meaning = "like preset paper, with nearest-mean classification and the official code's weights for it",
             .toml = "[strategy]\nspatial = 5.0\nreadout = \"nme\"\nexemplars = \"repeats\"\n" + training}};
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  options options_;
};

task<client_result> podnet::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = proxy_training(ctx, in, now, podnet_objective(options_, now.classes.growth()),
                            options_.flat + options_.spatial > 0.0);
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;

  auto tuning = tune_head(ctx, in, now, trained.weights);
  const auto weights = co_await tuning;
  auto summing = class_sums(ctx, now, weights);
  const auto sums = co_await summing;
  co_return result_of(now, weights, sums);
}

const strategy_registration line{
    {.name = "podnet",
     .summary = "distillation of pooled maps, and proxies of classes (PODNet, Douillard et al. 2020), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<podnet>(); }}};

} // namespace
} // namespace mneme::podnet_method
