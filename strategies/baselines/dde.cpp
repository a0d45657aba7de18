// DDE: X. Hu, K. Tang, C. Miao, X.-S. Hua and H. Zhang, "Distilling Causal Effect of Data in Class-Incremental
// Learning", CVPR 2021. DDE adds two terms to a base method, from task 2 on:
// - DCE averages a row's softmax with that of its neighbors, the 10 new rows that are nearest in the old feature space.
//   With p = softmax(z) of the row and p' the mean softmax of the neighbors:
//       loss = -log((p_y + p'_y) / 2).  Its gradient is that of cross-entropy times p_y / (p_y + p'_y).
// - TDE removes the mean direction h of the features (|h| = 1) from the logits at test time:
//       z' = z - alpha (x . h) (W h).
//
// The official code is built on LUCIR with a cosine head. It evaluates the 10 neighbors of every row with the current
// net in every step. h is a running mean over the steps. No public code combines DDE with iCaRL.
//
// Ours: the base is iCaRL with softmax, federated as in rehearsal.hpp. It has DCE, distillation by cross-entropy at
// T = 2, a linear head and herding. Once per round, each client searches the neighbors among its own rows, without
// augmentation. The softmax of neighbors is computed by the model at the start of each epoch, in evaluation mode. This
// saves ten forward passes per row. Therefore every epoch is a separate training job, and the momentum starts at 0. A
// client without new rows minimizes plain cross-entropy. h is the mean feature of a client's rows under its trained
// model; the server averages over clients.
#include "strategies/baselines/rehearsal.hpp"
#include "strategies/shared/linear_head.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme::dde_method {
namespace {

// Axes: n rows of a client, B rows of a step, C classes seen, D features, k neighbors of a row.

constexpr const char* drift_name = "drift"; // [D] in uploads

struct options {
  std::int64_t neighbors = 10;
  double alpha = 0.5, distillation_weight = 1.0, temperature = 2.0;
};

/// DCE plus distillation. The targets [B, C] hold p'; a row without neighbors has zeros.
class dce_loss final : public differentiable_loss {
public:
  explicit dce_loss(const options& options)
      : differentiable_loss({.identity = fmt::format("dde {} {}", options.distillation_weight, options.temperature),
                             .terms = {"causal_effect", "distillation"}},
                            [options](const loss_rows& in) { return terms(options, in); }) {}
  bool reads_targets() const override { return true; }

private:
  static std::vector<at::Tensor> terms(const options& options, const loss_rows& in) {
    auto effect = cross_entropy_rows(in.logits, in.labels);
    if (in.targets.defined()) {
      const auto near = in.targets.gather(1, in.labels.unsqueeze(1)).squeeze(1);
      const auto known = (in.targets.sum(1) > 0).to(near.scalar_type());
      effect = -(((-effect).exp() + near) / (1.0 + known)).log();
    }
    if (in.teachers.empty())
      return {effect, {}};
    return {effect, old_class_distillation(in.logits, in.teachers[0].logits, {.temperature = options.temperature}) *
                        options.distillation_weight};
  }
};

/// Finds the nearest new rows of each row by unit features: [n, k], padded with -1. Rows with equal features, such as
/// the row itself, are excluded.
tensor_map nearest_rows(const tensor_map& in) {
  constexpr std::int64_t rows_at_once = 512;
  const auto raw = in.at("features").to(at::kDouble);
  const auto x = raw / raw.norm(2, {1}, true).clamp_min(1e-12);
  const auto fresh = (in.at("labels") >= in.at("old")).nonzero().squeeze(1); // [m]
  const auto k = std::min(in.at("count").item<std::int64_t>(), fresh.numel());
  auto nearest = at::full({x.size(0), std::max<std::int64_t>(k, 1)}, -1, fresh.options());
  const auto shown = x.index_select(0, fresh);
  for (std::int64_t first = 0; k > 0 && first < x.size(0); first += rows_at_once) {
    const auto count = std::min(rows_at_once, x.size(0) - first);
    auto similar = x.narrow(0, first, count).mm(shown.t()); // cosine = 1 - distance^2 / 2
    constexpr double equal_min = 1.0 - 1e-12;
    similar.masked_fill_(similar >= equal_min, -3.0);
    const auto [values, places] = similar.topk(k, 1);
    nearest.narrow(0, first, count)
        .copy_(fresh.index_select(0, places.flatten()).view_as(places).masked_fill(values < -2.0, -1));
  }
  tensor_map out;
  out.put("nearest", nearest);
  return out;
}

/// Returns p' of every row, [n, C] float32. Rows without neighbors have zeros.
tensor_map answers_nearby(const tensor_map& in) {
  const auto& nearest = in.at("nearest");                         // [n, k]
  const auto p = at::softmax(in.at("logits").to(at::kDouble), 1); // [n, C]
  const auto known = (nearest >= 0).to(at::kDouble);              // [n, k]
  auto sum = at::zeros_like(p);
  for (std::int64_t k = 0; k < nearest.size(1); ++k)
    sum += p.index_select(0, nearest.select(1, k).clamp_min(0)) * known.select(1, k).unsqueeze(1);
  tensor_map out;
  out.put("answers", (sum / known.sum(1, true).clamp_min(1.0)).to(at::kFloat).contiguous());
  return out;
}

tensor_map mean_feature(const tensor_map& in) {
  tensor_map out;
  out.put(drift_name, in.at("features").to(at::kDouble).mean(0).to(at::kFloat).contiguous());
  return out;
}

compute_job on_tensors(const char* name, tensor_map (*run)(const tensor_map&), tensor_map in, std::int64_t rows) {
  return {.name = name, .run = run, .in = std::make_shared<const tensor_map>(std::move(in)), .rows = rows};
}

class dde final : public rehearsing_method {
public:
  void keys(key_table& table) override {
    table.integer("neighbours", options_.neighbors, {.low = 0, .high = 1000},
                  "Number of nearest new rows whose outputs are averaged with a row's output; 0: plain cross-entropy.");
    table.number("alpha", options_.alpha, {.low = 0.0, .high = 1.0},
                 "alpha: share of the feature drift that is removed from logits in tests.");
    table.number("distillation_weight", options_.distillation_weight, {.low = 0.0}, "Weight of the distillation.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation.");
    memory_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"step\"\n"
                                 "milestones = [5, 8]\nfactor = 0.1\nmomentum = 0.9\nweight_decay = 5e-4\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and rates of DDE's official code "
                        "scaled to these 200 epochs",
             .toml = training + "augment = \"crop-flip-jitter\"\n"},
            {.name = "official",
             .meaning = "like preset paper, with the herding and augmentation of DDE's official code",
             .toml = "[strategy]\nexemplars = \"repeats\"\n" + training + "augment = \"crop-flip\"\n"}};
  }
  method_needs needs() const override {
    auto needed = rehearsing_method::needs();
    needed.round_barrier = true;
    return needed;
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = rehearsing_method::check(setup);
    append(errors, reject_label_smoothing(
                       setup, "its loss reads the outputs of neighbors and has no cross-entropy of labels alone"));
    for (auto& finding : without_linear_head(*setup.net, "the drift of features is removed from the head"))
      errors.push_back(std::move(finding));
    return errors;
  }
  void prepare(const method_setup& setup) override {
    rehearsing_method::prepare(setup);
    loss_ = std::make_shared<dce_loss>(options_);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

private:
  [[nodiscard]] task<tensors_ref> train_with_neighbors(client_context& ctx, const rehearsal_state& now,
                                                       train_job job) const;

  options options_;
  loss_ref loss_;
};

/// Trains one epoch per job, because the softmax of the neighbors must be computed again before each epoch.
task<tensors_ref> dde::train_with_neighbors(client_context& ctx, const rehearsal_state& now, train_job job) const {
  extract_job old_features_request{.net = setup().net, .weights = job.teachers[0], .samples = job.samples};
  old_features_request.logits = false;
  auto old_features = ctx.extract(std::move(old_features_request));
  const auto before = co_await old_features;
  tensor_map known;
  known.put("features", before.features);
  known.put("labels", before.labels);
  known.put("old", at::tensor(now.classes.old(), at::kLong));
  known.put("count", at::tensor(options_.neighbors, at::kLong));
  auto searching = ctx.compute(on_tensors("neighbours", nearest_rows, std::move(known), job.samples.size()));
  const auto neighbors = co_await searching;

  auto weights = job.start;
  for (std::int64_t epoch = 0; epoch < job.options.epochs; ++epoch) {
    auto asking = ctx.extract({.net = setup().net, .weights = weights, .samples = job.samples});
    const auto said = co_await asking;
    tensor_map answers;
    answers.put("nearest", neighbors.out->at("nearest"));
    answers.put("logits", said.logits.narrow(1, 0, now.classes.opened()).contiguous());
    auto averaging = ctx.compute(on_tensors("answers nearby", answers_nearby, std::move(answers), job.samples.size()));
    const auto nearby = co_await averaging;
    auto single = job;
    single.start = weights;
    single.options.epochs = 1;
    single.annotations.targets = nearby.out->at("answers").cpu();
    single.stream.visit += static_cast<std::uint32_t>(epoch) << 24U; // gives every epoch its own shuffle
    auto learning = ctx.train(std::move(single));
    const auto trained = co_await learning;
    weights = trained.weights;
  }
  co_return weights;
}

task<client_result> dde::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = training(ctx, in, now, now.all_rows());
  job.objective = loss_;
  tensors_ref weights;
  if (!job.teachers.empty() && options_.neighbors > 0 && job.options.epochs > 0 && job.samples.size() > 0) {
    auto learning = train_with_neighbors(ctx, now, std::move(job));
    weights = co_await learning;
  } else {
    auto learning = ctx.train(std::move(job));
    const auto trained = co_await learning;
    weights = trained.weights;
  }

  tensors_ref drift;
  if (now.is_last && now.classes.old() > 0 && !now.all_rows().empty()) {
    extract_job looking{.net = setup().net, .weights = weights, .samples = view_of(ctx.samples(), now.all_rows())};
    looking.logits = false;
    auto look = ctx.extract(std::move(looking));
    const auto encoded = co_await look;
    tensor_map features;
    features.put("features", encoded.features);
    auto averaging = ctx.compute(on_tensors("drift", mean_feature, std::move(features), encoded.features.size(0)));
    const auto mean = co_await averaging;
    drift = mean.out;
  }
  co_return result_of(now, weights, drift);
}

// -- server half ------------------------------------------------------------------------------------------------------

class dde_server final : public rehearsing_server {
public:
  dde_server(const method_setup& setup, double alpha) : rehearsing_server(setup), net_(setup.net), alpha_(alpha) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    drift_ = at::Tensor();
    auto opening = rehearsing_server::open_task(ctx, info);
    const auto plan = co_await opening;
    co_return plan;
  }
  predictor predict() const override;
  void persist(archive& state) override {
    rehearsing_server::persist(state);
    state(sum_)(drift_);
  }

protected:
  void fold_more(const delivery& in) override {
    if (const auto* const own = in.upload->find(drift_name))
      sum_.add(own->cpu(), weight_of(in));
  }
  void end_task(const round_info&) override {
    if (sum_.empty())
      return;
    const auto mean = sum_.take();
    drift_ = mean / mean.norm().clamp_min(1e-12);
  }

private:
  model_ref net_;
  double alpha_;
  weighted_average sum_;
  at::Tensor drift_; // [D] of length 1; undefined before the second task ends
};

/// Folds TDE into the head: z - alpha (x . h) (W h) is the output of a head with rows w - alpha (w . h) h.
predictor dde_server::predict() const {
  auto learned = rehearsing_server::predict();
  if (!drift_.defined() || alpha_ == 0.0)
    return learned;
  auto flat = learned.weights->at(flat_weights).clone();
  for (const auto& entry : net_->layout()) {
    if (!entry.head || entry.whole || entry.shape.size() != 2)
      continue;
    auto rows = flat.narrow(0, entry.offset, entry.size).view({entry.shape[0], entry.shape[1]});
    const auto drift = drift_.to(rows.device());
    rows.sub_(at::outer(rows.mv(drift), drift), alpha_);
  }
  learned.weights = weights_only(flat);
  return learned;
}

std::unique_ptr<server_half> dde::make_server() const { return std::make_unique<dde_server>(setup(), options_.alpha); }

const strategy_registration line{
    {.name = "dde",
     .summary = "iCaRL with averaged outputs of neighbors and without feature drift (DDE, Hu et al. 2021), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<dde>(); }}};

} // namespace
} // namespace mneme::dde_method
