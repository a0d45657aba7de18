#include "strategies/lga/prototype_proxy.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

constexpr std::int64_t noisy_copies = 5; // number per feature, as in the official code

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns the head's weights [C, D] and biases [C] of the classes seen.
std::pair<at::Tensor, at::Tensor> head_of(const model& net, const old_model& old) {
  const auto& flat = old.weights->at(flat_weights);
  std::pair<at::Tensor, at::Tensor> head;
  for (const auto& part : net.layout())
    if (part.head)
      (part.shape.size() == 2 ? head.first : head.second) = as_in_files(flat, part).narrow(0, 0, old.classes);
  return head;
}

/// Function of the compute job: reads the arguments of monitor_score() from tensors; returns "score" [] float64.
tensor_map scored(const tensor_map& in) {
  const feature_noise how{.as_printed = in.at("noise_as_printed").item<std::int64_t>() != 0,
                          .scale = in.at("noise_scale").item<double>(),
                          .copies = in.at("noise_copies").item<std::int64_t>()};
  const rng_key stream{.seed = static_cast<std::uint64_t>(in.at("seed").item<std::int64_t>()),
                       .purpose = score_noise_draw,
                       .index = static_cast<std::uint64_t>(in.at("round").item<std::int64_t>())};
  const auto score = monitor_score(in.at("features"), in.at("labels"), in.at("head"), in.at("bias"), how, stream);
  tensor_map out;
  out.put("score", at::tensor(score, at::kDouble));
  return out;
}

void persist_model(archive& state, old_model& old) { state(old.weights)(old.classes); }

void add_model(tensor_map& to, const char* name, const old_model& old) {
  if (!old.weights)
    return;
  to.put(name, old.weights->at(flat_weights));
  to.put(std::string(name) + "_classes", at::tensor(old.classes, at::kLong));
}

old_model read_model(const tensor_map& from, const char* name) {
  const auto* const weights = from.find(name);
  if (!weights)
    return {};
  return {.weights = weights_only(*weights), .classes = from.at(std::string(name) + "_classes").item<std::int64_t>()};
}

} // namespace

old_models read_advice(const tensors_ref& advice) {
  if (!advice)
    return {};
  return {.before = read_model(*advice, "before"), .latest = read_model(*advice, "latest")};
}

void best_models::begin_task(bool forgets) {
  chosen.before = chosen.latest;
  if (forgets)
    best = 0.0;
}

prototype_proxy::prototype_proxy(model_ref net, std::uint64_t seed, std::shared_ptr<const shared_encoder> known,
                                 const proxy_options& options)
    : net_(std::move(net)), seed_(seed), known_(std::move(known)), options_(options),
      inversion_(inversion_program(known_->encoder, options_.inversion)) {
  if (options_.noise_scale > 0.0)
    omega_.scale = options_.noise_scale;
}

/// Splits an upload: row i of each gradient belongs to prototype i.
void prototype_proxy::receive(const delivery& in) {
  const auto count = in.upload->at(known_->encoder.tensors().front().name).size(0);
  for (std::int64_t i = 0; i < count; ++i) {
    auto single = std::make_shared<tensor_map>();
    for (const auto& tensor : known_->encoder.tensors())
      single->put(tensor.name, in.upload->at(tensor.name)[i].contiguous());
    single->put("encoder", known_->weights);
    pool_.push_back(single);
  }
}

task<tensors_ref> prototype_proxy::advise(server_context& ctx, const round_info& info, const tensors_ref& model) {
  const old_model now{.weights = model, .classes = info.seen_classes.high};
  if (!options_.scores()) {
    take_unscored(info, now);
    co_return advice();
  }

  // Gradients in the first rounds of a task belong to this task, as clients may detect the task in different rounds.
  const bool is_new_task =
      !pool_.empty() && (tasks_ == 0 || rounds_ >= std::max<std::int64_t>(options_.first_scored, 1));
  const bool has_new_images = !pool_.empty();
  if (is_new_task)
    begin_task();
  if (has_new_images) {
    auto inverting = ctx.run_each(inversions(info));
    auto inverted = co_await inverting;
    std::vector<tensors_ref> inversions;
    for (const auto& single : inverted)
      inversions.push_back(single.out);
    take_images(inversions);
  }

  const bool scores = images_.defined() && rounds_ >= options_.first_scored;
  double score = 0.0;
  if (images_.defined() && (scores || (has_new_images && options_.augments))) {
    extract_job encoding{.net = net_, .weights = model, .samples = ctx.rows_of(images_, labels_)};
    encoding.logits = false;
    auto encode = ctx.extract(std::move(encoding));
    auto encoded = co_await encode;
    if (has_new_images && options_.augments)
      learn_scale(encoded.features, labels_);
    if (scores) {
      auto testing = ctx.compute(scoring(info, now, encoded.features));
      auto tested = co_await testing;
      score = tested.out->at("score").item<double>();
    }
  }
  models_.offer(score, now);
  ++rounds_;
  co_return advice();
}

void prototype_proxy::begin_task() {
  images_ = labels_ = at::Tensor(); // the monitor keeps only images of the newest classes
  rounds_ = 0;
  ++tasks_;
  omega_.begin_task();
  models_.begin_task(options_.reset == score_reset::every_task ||
                     (options_.reset == score_reset::second_task && tasks_ == 2));
}

std::vector<program_job> prototype_proxy::inversions(const round_info& info) {
  std::vector<program_job> jobs;
  for (std::uint32_t i = 0; const auto& gradients : std::exchange(pool_, {}))
    jobs.push_back({.body = inversion_,
                    .in = gradients,
                    .stream = {.seed = seed_, .purpose = inversion_draw, .client = {i++}, .visit = info.round.value}});
  return jobs;
}

void prototype_proxy::take_images(const std::vector<tensors_ref>& inversions) {
  std::vector<at::Tensor> images, labels;
  if (images_.defined()) {
    images.push_back(images_);
    labels.push_back(labels_);
  }
  for (const auto& single : inversions) {
    const auto objective = single->at("objective").cpu();
    const double start = objective[0].item<double>(), end = objective[1].item<double>();
    if (end < 0.0) {
      ++failed_;
      continue;
    }
    starts_.push_back(start);
    ends_.push_back(end);
    images.push_back(single->at("images").cpu());
    labels.push_back(single->at("label").cpu().expand({options_.inversion.kept}));
  }
  if (images.empty())
    return;
  images_ = at::cat(images).contiguous();
  labels_ = at::cat(labels).contiguous();
}

/// Updates omega by eq. 12, unless omega is fixed. With the official noise, sets omega once, at the start of the second
/// task, to the root of the mean of Tr / d. The official code computes omega from training images on the server. mneme
/// uses reconstructions, since the proxy has no training images.
void prototype_proxy::learn_scale(const at::Tensor& features, const at::Tensor& labels) {
  const auto traces = variances_by_class(features, labels).mean(1); // [L] traces divided by d
  if (options_.noise_scale > 0.0)
    return;
  if (options_.running_scale)
    omega_.learn(traces);
  else if (tasks_ == 2)
    omega_.scale = std::sqrt(traces.mean().item<double>());
}

compute_job prototype_proxy::scoring(const round_info& info, const old_model& now, const at::Tensor& features) const {
  const auto [head, bias] = head_of(*net_, now);
  auto in = std::make_shared<tensor_map>();
  in->put("features", features.contiguous());
  in->put("labels", labels_);
  in->put("head", head.contiguous());
  in->put("bias", bias.contiguous());
  in->put("noise_as_printed", at::tensor(std::int64_t{options_.noise_as_printed}, at::kLong));
  in->put("noise_scale", at::tensor(omega_.scale, at::kDouble));
  in->put("noise_copies", at::tensor(options_.augments ? noisy_copies : 0, at::kLong));
  in->put("seed", at::tensor(static_cast<std::int64_t>(seed_), at::kLong));
  in->put("round", at::tensor(std::int64_t{info.round.value}, at::kLong));
  return {.name = "monitor score", .run = scored, .in = in};
}

/// Without gradients, a task begins when the head grows. Takes the last model of a task, or a uniformly random one: the
/// k-th model replaces the chosen one with probability 1 / k.
void prototype_proxy::take_unscored(const round_info& info, const old_model& now) {
  if (now.classes != classes_seen_) {
    models_.chosen.before = models_.chosen.latest;
    rounds_ = 0;
    ++tasks_;
  }
  classes_seen_ = now.classes;
  rng_stream stream({.seed = seed_, .purpose = any_model_draw, .index = info.round.value});
  if (stream.below(static_cast<std::uint64_t>(++rounds_)) == 0 || options_.reconstructs)
    models_.chosen.latest = now;
}

tensors_ref prototype_proxy::advice() const {
  auto advice = std::make_shared<tensor_map>();
  add_model(*advice, "before", models_.chosen.before);
  add_model(*advice, "latest", models_.chosen.latest);
  return advice;
}

std::map<std::string, double> prototype_proxy::summary_metrics() const {
  std::map<std::string, double> figures{{"reconstructions", static_cast<double>(ends_.size())},
                                        {"reconstructions_failed", static_cast<double>(failed_)}};
  if (!ends_.empty()) {
    figures["reconstruction_objective_start"] = median_of(starts_);
    figures["reconstruction_objective"] = median_of(ends_);
  }
  return figures;
}

void prototype_proxy::persist(archive& state) {
  state(pool_)(images_)(labels_);
  persist_model(state, models_.chosen.before);
  persist_model(state, models_.chosen.latest);
  state(models_.best)(tasks_)(rounds_)(classes_seen_)(starts_)(ends_)(failed_);
  state(omega_.scale)(omega_.scale_before)(omega_.classes)(omega_.classes_before);
}

} // namespace mneme
