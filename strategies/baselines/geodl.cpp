// GeoDL: C. Simon, P. Koniusz and M. Harandi, "On Learning the Geodesic Path for Incremental Learning", CVPR 2021.
// Features are distilled along the geodesic between the subspaces of old and new features. a and b are the unit
// features of teacher and student for a row. Ps and Pt [D, r] span the two subspaces, R spans the complement of Ps, and
// Th are the principal angles: Ps' Pt = U1 cos(Th) V', R' Pt = -U2 sin(Th) V'.
//     G = [Ps U1, R U2] [[L1, L2], [L2, L3]] [Ps U1, R U2]',
//     L1 = (1 + sin 2Th / 2Th) / 2,  L2 = (cos 2Th - 1) / 4Th,  L3 = (1 - sin 2Th / 2Th) / 2,
//     L = CE + weight sqrt(n_old / s) geo,  geo = mean of 1 - a' G b / sqrt(a' G a  b' G b)  (form = "cosine").
//
// The official code subtracts from each feature vector the mean of its D entries; the first r = min(B, D) - 2 left
// singular vectors then span the subspace. We do the same. The official code approximates G by 60 arbitrary vectors of
// R and one Newton-Schulz step per inverse. The command in its README uses geo = mean of (b - a)' G (b - a) (form =
// "difference"), on maps pooled to 2 x 2.
//
// Ours: federated as described in rehearsal.hpp. G is computed exactly, in float64, and has no gradient. Both forms
// read the features of the last layer. The paper combines GeoDL with iCaRL "without its distillation", for which no
// code exists; ours has softmax, a linear head, herding and nearest-mean classification. Steps of fewer than four rows
// have no geodesic term.
#include "strategies/baselines/geodesic_flow.hpp"
#include "strategies/baselines/rehearsal.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

// Axes: B rows of a step, D features, r directions of a subspace.

// -- the flow ---------------------------------------------------------------------------------------------------------

namespace {

constexpr double singular_min = 1e-6, sine_min = 1e-7, length_min = 1e-12;

} // namespace

/// Returns the left singular vectors of [D, B]. The mean of each row of features is subtracted first.
at::Tensor subspace_basis(const at::Tensor& unit_features) {
  const auto centered = (unit_features - unit_features.mean(1, true)).t(); // [D, B]
  const auto [left, values, right] = at::linalg_svd(centered, false);
  const auto kept = (values > values.max() * singular_min).sum().item<std::int64_t>();
  const auto most = std::min(unit_features.size(0), unit_features.size(1)) - 2;
  return left.narrow(1, 0, std::min(kept, most));
}

at::Tensor geodesic_flow(const at::Tensor& from, const at::Tensor& to) {
  const auto [u1, cosines, v] = at::linalg_svd(from.t().mm(to), false);
  const auto angle = cosines.clamp(-1.0, 1.0).acos(), sine = angle.sin();
  const auto moves = sine >= sine_min;
  const auto safe_angle = at::where(moves, angle, at::ones_like(angle));
  const auto ratio = at::where(moves, (2.0 * angle).sin() / (2.0 * safe_angle), at::ones_like(angle));
  const auto l1 = (ratio + 1.0) / 2.0, l3 = (1.0 - ratio) / 2.0;
  const auto l2 = at::where(moves, ((2.0 * angle).cos() - 1.0) / (4.0 * safe_angle), at::zeros_like(angle));
  const auto along = from.mm(u1); // [D, r]
  const auto beside = at::where(moves, (along * cosines - to.mm(v.t())) / at::where(moves, sine, at::ones_like(sine)),
                                at::zeros_like(along));
  const auto crossed = (along * l2).mm(beside.t());
  return (along * l1).mm(along.t()) + crossed + crossed.t() + (beside * l3).mm(beside.t());
}

at::Tensor geodesic_rows(const at::Tensor& features, const at::Tensor& teacher_output, const at::Tensor& flow,
                         geodesic_form form) {
  const auto unit = [](const at::Tensor& rows) { return rows / rows.norm(2, {1}, true).clamp_min(length_min); };
  const auto b = unit(features), a = unit(teacher_output);
  if (form == geodesic_form::difference)
    return ((b - a).mm(flow) * (b - a)).sum(1);
  const auto of_b = b.mm(flow);
  const auto own = (of_b * b).sum(1).clamp_min(length_min), other = (a.mm(flow) * a).sum(1).clamp_min(length_min);
  return 1.0 - (of_b * a).sum(1) * (own * other).rsqrt();
}

namespace {

struct options {
  double weight = 5.0;
  geodesic_form form = geodesic_form::cosine;
};

/// Returns the geodesic term of each row, float64. Undefined if the step has fewer than four rows or no directions.
at::Tensor geodesic_term(const at::Tensor& features, const at::Tensor& teacher_output, geodesic_form form) {
  constexpr std::int64_t rows_min = 4;
  if (features.size(0) < rows_min || features.size(1) < rows_min)
    return {};
  const auto now = features.to(at::kDouble), before = teacher_output.to(at::kDouble);
  const auto unit = [](const at::Tensor& x) { return x / x.norm(2, {1}, true).clamp_min(length_min); };
  const auto from = subspace_basis(unit(before)), to = subspace_basis(unit(now.detach()));
  const auto directions = std::min(from.size(1), to.size(1));
  if (directions == 0)
    return {};
  const auto flow = geodesic_flow(from.narrow(1, 0, directions), to.narrow(1, 0, directions));
  return geodesic_rows(now, before, flow, form);
}

loss_ref geodesic_objective(const options& options, const class_split& classes) {
  const auto factor =
      options.weight * std::sqrt(static_cast<double>(classes.old()) / static_cast<double>(classes.fresh.size()));
  return differentiable_objective(
      {.identity = fmt::format("geodl {} {} {}/{}", options.weight, static_cast<int>(options.form), classes.old(),
                               classes.fresh.size()),
       .terms = {"cross_entropy", "geodesic"},
       .reads_label_smoothing = true,
       .reads_features = true},
      [form = options.form, factor](const loss_rows& in) {
        std::vector<at::Tensor> terms{cross_entropy_rows(in.logits, in.labels, in.label_smoothing), {}};
        if (in.teachers.empty())
          return terms;
        if (const auto rows = geodesic_term(in.features, in.teachers[0].features, form); rows.defined())
          terms[1] = weighted_sum(rows, in.weight.to(at::kDouble)) * factor;
        return terms;
      });
}

class geodl final : public rehearsing_method {
public:
  geodl() : rehearsing_method(class_readout::nearest_mean) {}
  void keys(key_table& table) override {
    table.number("weight", options_.weight, {.low = 0.0}, "Weight of the geodesic term; 0: replay with cross-entropy.");
    table.choice(
        "form", options_.form, {{"cosine", geodesic_form::cosine}, {"difference", geodesic_form::difference}},
        "Geodesic term: one minus a cosine similarity under G as in the paper, or a squared distance under G.");
    memory_keys(table);
    readout_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"step\"\n"
                                 "milestones = [5, 8]\nfactor = 0.1\nmomentum = 0.9\nweight_decay = 5e-4\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and rates of LUCIR's official "
                        "code for CIFAR-100 scaled to these 200 epochs",
             .toml = training + "augment = \"crop-flip-jitter\"\n"},
            {.name = "official",
             .meaning = "like preset paper, with the form and the weight in the README of GeoDL's official code",
             .toml = "[strategy]\nform = \"difference\"\nweight = 10.0\n" + training + "augment = \"crop-flip\"\n"}};
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = rehearsing_method::check(setup);
    if (setup.trainable == trainable_part::head)
      errors.push_back({"model.trainable", "model.trainable = \"head\": geodl distills features, which do not change "
                                           "if only the head is trained; expected \"all\""});
    return errors;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  options options_;
};

task<client_result> geodl::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = training(ctx, in, now, now.all_rows());
  if (options_.weight == 0.0)
    job.remove_teachers();
  if (!job.teachers.empty())
    job.options.teachers = {{.features = true}};
  job.objective = geodesic_objective(options_, now.classes);
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;

  auto summing = class_sums(ctx, now, trained.weights);
  const auto sums = co_await summing;
  co_return result_of(now, trained.weights, sums);
}

const strategy_registration line{
    {.name = "geodl",
     .summary = "distillation along the geodesic of feature subspaces (GeoDL, Simon et al. 2021), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<geodl>(); }}};

} // namespace
} // namespace mneme
