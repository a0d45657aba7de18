// BiC: Y. Wu, Y. Chen, L. Wang, Y. Ye, Z. Liu, Y. Guo and Y. Fu, "Large Scale Incremental Learning", CVPR 2019. The
// last layer is biased towards new classes. BiC corrects this bias with two numbers, which are fitted on a small
// balanced hold-out set. Stage 1 trains over the classes seen, with lambda = n_old / n and T = 2:
//     L = lambda KD + (1 - lambda) CE,  KD = -sum over old classes c of softmax(q' / T)_c log softmax(z / T)_c.
// q' are the teacher's logits, with those of its newest task corrected to alpha q + beta. Stage 2 freezes all weights:
//     alpha, beta = argmin CE(softmax([z_old, alpha z_new + beta]), y) + penalty beta^2  over the hold-out.
// The prediction is the argmax of the corrected logits.
//
// The official code adds 0.05 beta^2 in stage 2 and fits alpha and beta by epochs of gradient descent. PyCIL also keeps
// the corrections of earlier tasks in the logits of student and teacher (corrected_tasks = "all").
//
// Ours: federated as described in rehearsal.hpp. Every client holds out rows of each class that it has, both exemplars
// and current rows, and keeps this hold-out in all rounds of a task. Stage 2 runs in the last round of a task, by
// default on the received model, which is the same for all clients. The server averages alpha and beta over the clients
// that have both old and new rows. Newton's method solves stage 2 to |gradient| < 1e-8. If the hold-out is separable
// and the penalty is 0, no minimum exists; the iteration still stops at this bound.
#include "strategies/baselines/rehearsal.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
#include <map>
namespace mneme::bic_method {
namespace {

// Axes: B rows of a step, C classes seen, O old classes, h rows of a hold-out, T tasks.

enum draws : std::uint32_t { holdout_draw = first_method_purpose };
enum class corrected_blocks : std::uint8_t { newest, all };
enum class tuned_model : std::uint8_t { received, trained };
// "corrections" [T, 2] hold alpha and beta of each task. "correction" [3] holds alpha, beta and the weight of an
// upload.
constexpr const char *corrections_name = "corrections", *correction_name = "correction";

struct options {
  double temperature = 2.0, holdout_share = 0.1, penalty = 0.0;
  corrected_blocks corrects = corrected_blocks::newest;
  tuned_model tuned_on = tuned_model::received;
};

/// Replaces the logits in `columns` by alpha z + beta.
struct correction {
  class_range columns{};
  double alpha = 1.0, beta = 0.0;
};
at::Tensor corrected(const at::Tensor& logits, const std::vector<correction>& by) {
  auto moved = logits.clone();
  for (const auto& block : by)
    if (block.columns.size() > 0)
      moved.narrow(1, block.columns.low, block.columns.size()).mul_(block.alpha).add_(block.beta);
  return moved;
}

loss_ref bic_objective(double temperature, double lambda, std::vector<correction> of_teacher,
                       std::vector<correction> of_student) {
  auto identity = fmt::format("bic {} {}", temperature, lambda);
  for (const auto* const list : {&of_teacher, &of_student}) {
    identity += " |";
    for (const auto& block : *list)
      identity += fmt::format(" {}-{} {} {}", block.columns.low, block.columns.high, block.alpha, block.beta);
  }
  return differentiable_objective(
      {.identity = std::move(identity), .terms = {"cross_entropy", "distillation"}, .reads_label_smoothing = true},
      [=](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto z = corrected(in.logits, of_student);
        const auto cross_entropy = cross_entropy_rows(z, in.labels, in.label_smoothing);
        if (in.teachers.empty())
          return {cross_entropy, {}};
        const auto teacher_output = corrected(in.teachers[0].logits, of_teacher);
        return {cross_entropy * (1.0 - lambda),
                old_class_distillation(z, teacher_output, {.temperature = temperature}) * lambda};
      });
}

// -- stage 2 ----------------------------------------------------------------------------------------------------------

/// Value, gradient and Hessian of the stage 2 loss with respect to (alpha, beta).
struct tuning_point {
  double value = 0.0;
  double g[2]{}, h[3]{}; // h: second derivatives aa, ab, bb
};
tuning_point at_point(const at::Tensor& logits, const at::Tensor& labels, std::int64_t old, double penalty,
                      double alpha, double beta) {
  const auto fresh = logits.size(1) - old;
  const auto z_new = logits.narrow(1, old, fresh);
  const auto log_p = at::log_softmax(at::cat({logits.narrow(1, 0, old), z_new * alpha + beta}, 1), 1);
  const auto p = log_p.exp().narrow(1, old, fresh); // [h, new]
  const auto is_new = (labels >= old).to(at::kDouble);
  const auto of_label = logits.gather(1, labels.unsqueeze(1)).squeeze(1) * is_new;
  const auto mass = p.sum(1), first = (p * z_new).sum(1), second = (p * z_new * z_new).sum(1);
  const auto mean = [](const at::Tensor& x) { return x.mean().item<double>(); };
  return {.value = -mean(log_p.gather(1, labels.unsqueeze(1))) + penalty * beta * beta,
          .g = {mean(first - of_label), mean(mass - is_new) + 2.0 * penalty * beta},
          .h = {mean(second - first * first), mean(first - first * mass), mean(mass - mass * mass) + 2.0 * penalty}};
}

/// Fits (alpha, beta) by Newton's method. A step that would increase the convex loss is halved, at most 40 times.
tensor_map tuned(const tensor_map& in) {
  constexpr int steps_max = 200, halvings_max = 40;
  constexpr double gradient_min = 1e-8, ridge = 1e-12;
  const auto logits = in.at("logits").cpu().to(at::kDouble), labels = in.at("labels").cpu();
  const auto old = in.at("old").item<std::int64_t>();
  const auto penalty = in.at("penalty").item<double>();
  double alpha = 1.0, beta = 0.0;
  auto point = at_point(logits, labels, old, penalty, alpha, beta);
  for (int step = 0; step < steps_max && std::hypot(point.g[0], point.g[1]) > gradient_min; ++step) {
    const double a = point.h[0] + ridge, b = point.h[1], c = point.h[2] + ridge, determinant = a * c - b * b;
    const double d_alpha = (c * point.g[0] - b * point.g[1]) / determinant;
    const double d_beta = (a * point.g[1] - b * point.g[0]) / determinant;
    double share = 1.0;
    auto next = at_point(logits, labels, old, penalty, alpha - d_alpha, beta - d_beta);
    for (int k = 0; k < halvings_max && !(next.value <= point.value); ++k) {
      share /= 2.0;
      next = at_point(logits, labels, old, penalty, alpha - share * d_alpha, beta - share * d_beta);
    }
    if (!(next.value <= point.value))
      break; // no further decrease is possible in float64
    alpha -= share * d_alpha;
    beta -= share * d_beta;
    point = next;
  }
  tensor_map out;
  out.put(correction_name, at::tensor({alpha, beta, 1.0}, at::kDouble));
  return out;
}

compute_job tuning_job(const extract_output& held, const class_split& classes, double penalty) {
  auto in = std::make_shared<tensor_map>();
  in->put("logits", held.logits.narrow(1, 0, classes.opened()).contiguous());
  in->put("labels", held.labels);
  in->put("old", at::tensor(classes.old(), at::kLong));
  in->put("penalty", at::tensor(penalty, at::kDouble));
  return {.name = "bias correction", .run = tuned, .in = std::move(in), .rows = held.labels.numel()};
}

// -- the method -------------------------------------------------------------------------------------------------------

class bic final : public rehearsing_method {
public:
  void keys(key_table& table) override {
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation.");
    table.number("holdout_share", options_.holdout_share, {.low = 0.0, .high = 1.0, .open_low = true},
                 "Rows held out of each class, as a share of the exemplars per old class; at least one row.");
    table.number("penalty", options_.penalty, {.low = 0.0}, "Weight of beta^2 in the loss of stage 2.");
    table.choice("corrected_tasks", options_.corrects,
                 {{"newest", corrected_blocks::newest}, {"all", corrected_blocks::all}},
                 "Logits that are corrected: those of the newest task, or of every task with its own alpha and beta.");
    table.choice("correction_model", options_.tuned_on,
                 {{"received", tuned_model::received}, {"trained", tuned_model::trained}},
                 "Model that stage 2 corrects: the received one of the last round, or the client's trained one.");
    memory_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"step\"\n"
                                 "milestones = [4, 6, 8]\nfactor = 0.1\nmomentum = 0.9\nweight_decay = 2e-4\n";
    return {
        {.name = "paper",
         .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and rates scaled to these 200 epochs",
         .toml = training + "augment = \"crop-flip-jitter\"\n"},
        {.name = "official",
         .meaning = "like preset paper, with the penalty of BiC's official code",
         .toml = "[strategy]\npenalty = 0.05\n" + training + "augment = \"crop-flip\"\n"}};
  }
  method_needs needs() const override {
    auto needed = rehearsing_method::needs();
    needed.round_barrier = true;
    return needed;
  }
  diagnostics check(const method_setup& setup) const override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

private:
  struct held_out {
    row_list rows{}, training{};
    bool has_both = false; // true: there are rows of both old and new classes
  };
  [[nodiscard]] held_out hold_out(const client_context& ctx, const broadcast& in, const rehearsal_state& now) const;
  [[nodiscard]] loss_ref loss_for(const broadcast& in, const class_split& classes) const;

  options options_;
};

diagnostics bic::check(const method_setup& setup) const {
  auto errors = rehearsing_method::check(setup);
  const auto of_class = static_cast<double>(memory_rows(setup)) / static_cast<double>(setup.classes);
  if (std::max(1.0, options_.holdout_share * of_class) >= of_class)
    errors.push_back(
        {"strategy.holdout_share",
         fmt::format("strategy.holdout_share = {}: of the {} exemplars that a class has, a hold-out of {} "
                     "leaves none to be trained on; expected a smaller share or a larger strategy.memory",
                     options_.holdout_share, static_cast<std::int64_t>(of_class),
                     std::max<std::int64_t>(1, static_cast<std::int64_t>(options_.holdout_share * of_class)))});
  const auto& layout = setup.net->layout();
  if (setup.net->classes() > 0 && std::none_of(layout.begin(), layout.end(), [&](const parameter& entry) {
        return entry.head && !entry.whole && entry.shape == std::vector{setup.net->classes()};
      }))
    errors.push_back(
        {"model.name",
         fmt::format("the head of '{}' has no biases, to which beta is added; expected a net with a linear head",
                     setup.net->identity())});
  return errors;
}

/// The random key does not contain the round, so the hold-out is the same in all rounds of a task.
bic::held_out bic::hold_out(const client_context& ctx, const broadcast& in, const rehearsal_state& now) const {
  const auto& source = *ctx.samples().source;
  const auto known = std::ssize(labels_in(source, now.exemplars));
  if (known == 0)
    return {.training = now.all_rows()};
  const auto each = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(options_.holdout_share * static_cast<double>(memory_rows(setup())) /
                                   static_cast<double>(known)));
  std::map<std::int64_t, row_list> by_class;
  for (const auto row : now.all_rows())
    by_class[source.label(row)].push_back(row);
  held_out parts;
  bool has_old = false, has_new = false;
  for (auto& [label, rows] : by_class) {
    rng_stream draw({.seed = setup().seed,
                     .purpose = holdout_draw,
                     .client = ctx.self(),
                     .task = in.info.task,
                     .index = static_cast<std::uint64_t>(label)});
    draw.shuffle(std::span(rows));
    const auto out = std::min(each, std::ssize(rows) - 1); // at least one row of each class stays for training
    parts.rows.insert(parts.rows.end(), rows.begin(), rows.begin() + out);
    parts.training.insert(parts.training.end(), rows.begin() + out, rows.end());
    (label < now.classes.old() ? has_old : has_new) |= out > 0;
  }
  parts.has_both = has_old && has_new;
  return parts;
}

loss_ref bic::loss_for(const broadcast& in, const class_split& classes) const {
  std::vector<correction> of_teacher, of_student;
  const auto* const known = in.extra ? in.extra->find(corrections_name) : nullptr;
  for (std::int64_t t = 0; known && t < std::min(classes.task, known->size(0)); ++t) {
    const correction block{.columns = setup().task_classes[static_cast<std::size_t>(t)],
                           .alpha = (*known)[t][0].item<double>(),
                           .beta = (*known)[t][1].item<double>()};
    if (options_.corrects == corrected_blocks::all)
      of_student.push_back(block);
    if (options_.corrects == corrected_blocks::all || t + 1 == classes.task)
      of_teacher.push_back(block);
  }
  const auto lambda = static_cast<double>(classes.old()) / static_cast<double>(classes.opened());
  return bic_objective(options_.temperature, lambda, std::move(of_teacher), std::move(of_student));
}

task<client_result> bic::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;
  const auto parts = hold_out(ctx, in, now);

  auto job = training(ctx, in, now, parts.training);
  job.objective = loss_for(in, now.classes);
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;

  tensors_ref tuning_result;
  if (now.is_last && parts.has_both) {
    auto looking = ctx.extract({.net = setup().net,
                                .weights = options_.tuned_on == tuned_model::received ? now.start : trained.weights,
                                .samples = view_of(ctx.samples(), parts.rows)});
    const auto held = co_await looking;
    auto tuning = ctx.compute(tuning_job(held, now.classes, options_.penalty));
    const auto tuned_output = co_await tuning;
    tuning_result = tuned_output.out;
  }
  co_return result_of(now, trained.weights, tuning_result);
}

// -- server half ------------------------------------------------------------------------------------------------------

class bic_server final : public rehearsing_server {
public:
  bic_server(const method_setup& setup, corrected_blocks corrects)
      : rehearsing_server(setup), net_(setup.net), tasks_(setup.task_classes), corrects_(corrects) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    present_ = info.task.value;
    auto opening = rehearsing_server::open_task(ctx, info);
    const auto plan = co_await opening;
    co_return plan;
  }
  broadcast open_round(const round_info& info) override {
    auto sent = rehearsing_server::open_round(info);
    if (!sent.extra || corrections_.empty())
      return sent;
    auto extra = std::make_shared<tensor_map>(*sent.extra);
    extra->put(corrections_name,
               at::tensor(corrections_, at::kDouble).view({std::ssize(corrections_) / 2, 2}).contiguous());
    sent.extra = extra;
    return sent;
  }
  predictor predict() const override;
  std::map<std::string, double> summary_metrics() const override {
    auto numbers = rehearsing_server::summary_metrics();
    for (std::size_t t = 1; t < corrections_.size() / 2; ++t) {
      numbers[fmt::format("alpha_{}", t + 1)] = corrections_[2 * t];
      numbers[fmt::format("beta_{}", t + 1)] = corrections_[2 * t + 1];
    }
    return numbers;
  }
  void persist(archive& state) override {
    rehearsing_server::persist(state);
    state(present_)(corrections_)(alpha_sum_)(beta_sum_)(count_);
  }

protected:
  void fold_more(const delivery& in) override {
    const auto* const own = in.upload->find(correction_name);
    if (!own)
      return;
    alpha_sum_ += (*own)[0].item<double>();
    beta_sum_ += (*own)[1].item<double>();
    ++count_;
  }
  void end_task(const round_info& info) override {
    while (corrections_.size() < 2 * info.task.value) // earlier tasks whose last round did not finish have no
                                                      // correction
      corrections_.push_back(corrections_.size() % 2 == 0 ? 1.0 : 0.0);
    corrections_.push_back(count_ == 0 ? 1.0 : alpha_sum_ / static_cast<double>(count_));
    corrections_.push_back(count_ == 0 ? 0.0 : beta_sum_ / static_cast<double>(count_));
    alpha_sum_ = beta_sum_ = 0.0;
    count_ = 0;
  }

private:
  model_ref net_;
  std::vector<class_range> tasks_;
  corrected_blocks corrects_;
  std::uint32_t present_ = 0;       // the current task
  std::vector<double> corrections_; // alpha and beta of each finished task, in order
  double alpha_sum_ = 0.0, beta_sum_ = 0.0;
  std::int64_t count_ = 0;
};

/// Folds the correction into the head: weight rows become alpha w, and biases become alpha b + beta.
predictor bic_server::predict() const {
  auto learned = rehearsing_server::predict();
  auto flat = learned.weights->at(flat_weights).clone();
  for (std::size_t t = 0; t < std::min(corrections_.size() / 2, tasks_.size()); ++t) {
    if (corrects_ == corrected_blocks::newest && t != present_)
      continue;
    for (const auto& entry : net_->layout()) {
      if (!entry.head || entry.whole)
        continue;
      const auto row = entry.size / entry.shape[0];
      auto block = flat.narrow(0, entry.offset + tasks_[t].low * row, tasks_[t].size() * row);
      block.mul_(corrections_[2 * t]);
      if (entry.shape.size() == 1)
        block.add_(corrections_[2 * t + 1]);
    }
  }
  learned.weights = weights_only(flat);
  return learned;
}

std::unique_ptr<server_half> bic::make_server() const {
  return std::make_unique<bic_server>(setup(), options_.corrects);
}

const strategy_registration line{
    {.name = "bic",
     .summary = "two parameters that correct the bias towards new classes (BiC, Wu et al. 2019), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<bic>(); }}};

} // namespace
} // namespace mneme::bic_method
