// OSI-FL: one-shot incremental federated learning with a generative model on the server. Every client uploads the mean
// embedding of each of its classes once (eq. 9). The server generates images conditioned on these embeddings by latent
// diffusion with guidance (eqs. 2-5). It trains the global model on them and on retained images of earlier tasks (eq.
// 16). Then it retains the p images per class with the largest loss gradients (eqs. 13-15). The key `mode` selects a
// variant. `oscar` keeps all images and restarts every task from the initial model (eq. 12). `oscar-r` retains none and
// adds lambda / 2 |w - w_(t-1)|^2. `oscar-il` retains none (eq. 11).
//
// The official code (github.com/obaidullahzaland/OSI-FL, bf60f74; preset "official") trains the head of a pretrained
// ResNet-18 by SGD with batch norms in training mode, over all classes. It retains the images with the largest loss
// after the task, computed on one random augmentation. We omit its schedule, which lowers the rate when the loss
// stalls, and its momentum, which continues across tasks. Its federated baselines train one client per task
// (old_model_share = 0.5). The official OSCAR (github.com/obaidullahzaland/oscar, 450d932; Zaland et al., ICME 2025;
// preset "official-oscar") trains a whole net in one task and keeps the weights of the epoch with the highest training
// accuracy. We omit its step schedule, which uses the loss as the epoch number, and its different normalizations in
// training and test.
//
// Ours: if keys name modules, a captioner and a text encoder compute the embeddings. Then, images are generated with
// Stable Diffusion, as in the official code (condition = "sd77x768"), or with a small generator ("embed512"). Without
// these keys, the server trains an encoder and a generator on public rows and sends each client the encoder once. p is
// the key `retained_per_class`, a number of images per class and task. Images are scored with the model before the
// task, theta_(t-1), as in eq. 13 (`scoring_model`). The loss covers the classes seen (`loss_classes`). Tasks have
// equal weights, in eq. 12 as well (`replay`).
#include "strategies/osi_fl/best_epoch.hpp"
#include "strategies/osi_fl/osi_options.hpp"
#include "strategies/osi_fl/retained_rows.hpp"
#include "strategies/osi_fl/weight_change_penalty.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
namespace mneme::osi_fl_method {
namespace {

// Axes: K classes of an upload, E numbers of a condition, Z images per client and class, N images of a task, P weights
// of the global model, D features.

using run_mode = osi_options::run_mode;
using retention = osi_options::retention;
using score_moment = osi_options::score_moment;

enum draws : std::uint32_t { summary_draw = first_method_purpose, generation_draw, retention_draw, score_view_draw };

/// Generated images with their labels.
struct labeled_images {
  at::Tensor images{}; // [N, C, H, W] uint8
  at::Tensor labels{}; // [N] int64
  [[nodiscard]] std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
  [[nodiscard]] std::int64_t bytes() const {
    return size() == 0 ? 0 : static_cast<std::int64_t>(images.nbytes() + labels.nbytes());
  }
  [[nodiscard]] labeled_images at(const std::vector<std::int64_t>& positions) const {
    const auto index = at::tensor(positions, at::kLong);
    return {.images = images.index_select(0, index), .labels = labels.index_select(0, index)};
  }
  void persist(archive& state) { state(images)(labels); }
};

labeled_images together(const std::vector<labeled_images>& parts) {
  std::vector<at::Tensor> images, labels;
  for (const auto& part : parts)
    if (part.size() > 0) {
      images.push_back(part.images);
      labels.push_back(part.labels);
    }
  return {.images = at::cat(images), .labels = at::cat(labels)};
}

std::vector<std::int64_t> numbers_in(const at::Tensor& values) {
  const auto whole = values.cpu().to(at::kLong).contiguous();
  return {whole.const_data_ptr<std::int64_t>(), whole.const_data_ptr<std::int64_t>() + whole.numel()};
}

std::vector<double> doubles_in(const at::Tensor& values) {
  const auto whole = values.cpu().to(at::kDouble).contiguous();
  return {whole.const_data_ptr<double>(), whole.const_data_ptr<double>() + whole.numel()};
}

// -- client half: the message of class means (eq. 9) ------------------------------------------------------------------

// Packs an upload: "task" [1], "classes" [K] and "counts" [K] int32, "means" [K, E] float32. It takes 4 (2 + E) bytes
// per class, plus 4 bytes.

tensors_ref packed(const program_output& summed, task_id task) {
  const auto counts = summed.out->at("counts").cpu();
  const auto classes = counts.nonzero().flatten();
  auto upload = std::make_shared<tensor_map>();
  upload->put("task", at::tensor({static_cast<std::int64_t>(task.value)}, at::kInt));
  upload->put("classes", classes.to(at::kInt));
  upload->put("counts", counts.index_select(0, classes).to(at::kInt));
  upload->put("means", summed.out->at("means").index_select(0, classes.to(summed.out->at("means").device())));
  return upload;
}

class osi_fl final : public strategy {
public:
  void keys(key_table& table) override { options_.keys(table); }
  /// The server generates images for all uploads of a round together.
  method_needs needs() const override {
    const std::string share = options_.uses_diffusion_parts() ? "" : "public_share = 0.15\n";
    method_needs needs{.round_barrier = true,
                       .own_rounds = true,
                       .feature_folder = options_.cache,
                       .defaults = "[partition]\nover = \"enrolled\"\n" + share};
    options_.parts.add_to(needs);
    return needs;
  }
  std::vector<preset> presets() const override { return osi_options::presets(); }
  diagnostics check(const method_setup& setup) const override { return options_.check(setup); }
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

private:
  method_setup setup_;
  osi_options options_;
  program_ref summary_, image_program_; // created once, in prepare()
};

void osi_fl::prepare(const method_setup& setup) {
  setup_ = setup;
  if (!options_.captions()) {
    summary_ = class_means(latent_generator::shape_of(setup), setup.classes);
    return;
  }
  const auto& sampling = options_.generator.sampling;
  const bool generates = options_.uses_diffusion_parts();
  const auto programs = options_.parts.build(
      setup, {.images = generates ? sampling.images : 0, .steps = sampling.steps, .guidance = sampling.guidance});
  summary_ = programs.class_means;
  if (generates)
    image_program_ = programs.images;
  else {
    options_.generator.embedding = programs.embedding_width;
    options_.generator.describing = programs.embeddings;
  }
}

/// Computes the mean embedding of each class (eq. 9). Clients train nothing and keep no memory.
task<client_result> osi_fl::client_round(client_context& ctx, const broadcast& in) const {
  program_job job{
      .body = summary_, .in = in.initial_payload, .samples = ctx.samples(), .stream = ctx.stream(summary_draw)};
  job.rows = ctx.samples().size();
  auto summing = ctx.run(std::move(job));
  auto summed = co_await summing;
  co_return client_result{.upload = packed(summed, in.info.task), .memory = nullptr, .rows = ctx.samples().size()};
}

// -- server half ------------------------------------------------------------------------------------------------------

using speaker = std::pair<std::uint32_t, std::uint32_t>; // client and task

class osi_server final : public server_half {
public:
  /// @param image_program generates images under a condition [E]; null: the generator trained in this run
  osi_server(const method_setup& setup, const osi_options& options, program_ref image_program)
      : setup_(setup), options_(options), generator_(setup, options.generator),
        image_program_(std::move(image_program)), weights_(setup.initial->at(flat_weights)) {}

  /// A task is one round with all present clients; every client with rows uploads once.
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value == 0 && !image_program_) {
      auto training = generator_.train(ctx);
      co_await training;
    }
    co_return task_plan{.rounds = 1, .all_enrolled = true};
  }
  broadcast open_round(const round_info&) override {
    return {.info = {},
            .weights = std::make_shared<const tensor_map>(),
            .extra = nullptr,
            .initial_payload = generator_.is_trained() && !options_.captions() ? generator_.encoder() : nullptr};
  }

  /// Stores the upload until the round closes, because images of all uploads are generated together. The order of
  /// arrival has no effect. Throws std::runtime_error if a client uploads twice in a task.
  void fold(const delivery& in) override {
    const speaker from{in.from.value, static_cast<std::uint32_t>(numbers_in(in.upload->at("task")).front())};
    if (!sent_numbers_.try_emplace(from, in.upload->at("means").numel()).second)
      throw std::runtime_error(fmt::format(
          "client {} already sent its message in task {}; a client of a one-shot federation sends one message",
          from.first, from.second + 1));
    received_[from] = in.upload;
    const auto rows = in.upload->at("counts").sum().item<std::int64_t>();
    const auto encoder = generator_.is_trained() && !options_.captions() ? generator_.encoder()->bytes() : 0;
    const auto pixels = setup_.shape[0] * setup_.shape[1] * setup_.shape[2];
    client_held_bytes_ = std::max(client_held_bytes_, rows * pixels + encoder + in.upload->bytes());
  }

  task<void> close_round(server_context& ctx, const round_info& info) override;
  predictor predict() const override { return {.net = setup_.net, .weights = weights_only(weights_)}; }
  std::map<std::string, double> summary_metrics() const override;
  std::map<std::string, at::Tensor> sample_images() const override;
  void persist(archive& state) override {
    state(generator_).frozen(weights_)(sent_numbers_)(received_)(kept_)(shown_)(generated_);
    state(client_held_bytes_)(server_held_bytes_);
  }

private:
  [[nodiscard]] std::vector<program_job> generation_jobs() const;
  [[nodiscard]] program_job generation(const at::Tensor& condition, const rng_key& stream) const;
  [[nodiscard]] labeled_images collected(const std::vector<program_output>& generated);
  [[nodiscard]] train_job training_job(const labeled_images& pool, const context& ctx, const round_info& info) const;
  [[nodiscard]] class_range covered_classes(const round_info& info) const;
  [[nodiscard]] loss_ref objective(const round_info& info) const;
  [[nodiscard]] augmentation_kind view() const;
  [[nodiscard]] std::vector<std::int64_t> sizes_kept() const;
  [[nodiscard]] std::int64_t held_bytes(const labeled_images& fresh) const;
  task<std::vector<std::int64_t>> chosen(server_context& ctx, const round_info& info, const labeled_images& fresh,
                                         tensors_ref weights) const;

  method_setup setup_;
  osi_options options_;
  latent_generator generator_;
  program_ref image_program_;
  at::Tensor weights_;                           // [P]
  std::map<speaker, std::int64_t> sent_numbers_; // number of values sent, by client and task
  std::map<speaker, tensors_ref> received_;      // uploads of the open round
  std::vector<labeled_images> kept_;             // retained images of each finished task
  std::map<std::int64_t, at::Tensor> shown_;     // first generated images of each class
  std::int64_t generated_ = 0;
  // Peak memory in bytes, without temporary memory of computations. A client holds its rows as bytes, the encoder and
  // the upload. The server holds all nets, the uploads of a round, generated and retained images, and the global model.
  std::int64_t client_held_bytes_ = 0, server_held_bytes_ = 0;
};

// -- generation of images (eqs. 2-5) ----------------------------------------------------------------------------------

program_job osi_server::generation(const at::Tensor& condition, const rng_key& stream) const {
  if (!image_program_)
    return generator_.generation(condition, stream);
  auto in = std::make_shared<tensor_map>();
  in->put("condition", condition);
  return {.body = image_program_, .in = in, .stream = stream};
}

/// Makes one job per client and class, in this order.
std::vector<program_job> osi_server::generation_jobs() const {
  std::vector<program_job> jobs;
  for (const auto& [from, upload] : received_) {
    const auto classes = numbers_in(upload->at("classes"));
    for (std::size_t k = 0; k < classes.size(); ++k)
      jobs.push_back(generation(upload->at("means")[static_cast<std::int64_t>(k)].clone(),
                                {.seed = setup_.seed,
                                 .purpose = generation_draw,
                                 .client = {from.first},
                                 .task = {from.second},
                                 .index = static_cast<std::uint64_t>(classes[k])}));
  }
  return jobs;
}

/// Concatenates the generated images, ordered by client and class.
labeled_images osi_server::collected(const std::vector<program_output>& generated) {
  std::vector<labeled_images> parts;
  for (const auto& [from, upload] : received_)
    for (const auto label : numbers_in(upload->at("classes"))) {
      const auto images = generated[parts.size()].out->at("images").cpu();
      parts.push_back({.images = images, .labels = at::full({images.size(0)}, label, at::kLong)});
      generated_ += images.size(0);
      if (!shown_.contains(label))
        shown_[label] = images.narrow(0, 0, std::min(options_.shown_images, images.size(0))).clone();
    }
  return parts.empty() ? labeled_images{} : together(parts);
}

std::vector<std::int64_t> osi_server::sizes_kept() const {
  std::vector<std::int64_t> sizes;
  for (const auto& task : kept_)
    sizes.push_back(task.size());
  return sizes;
}

std::int64_t osi_server::held_bytes(const labeled_images& fresh) const {
  auto held = static_cast<std::int64_t>(weights_.nbytes()) + generator_.bytes() + fresh.bytes();
  for (const auto& [from, upload] : received_)
    held += upload->bytes();
  for (const auto& task : kept_)
    held += task.bytes();
  return held;
}

} // namespace
} // namespace mneme::osi_fl_method

// -- the global model (eqs. 11, 12, 16) -------------------------------------------------------------------------------

/// J_t = mean loss over new images + sum over earlier tasks of the mean loss over E_i (eq. 16), as a weight per row.
std::vector<float> mneme::weights_by_task(std::int64_t fresh, std::span<const std::int64_t> retained) {
  std::vector<std::int64_t> sizes{fresh};
  sizes.insert(sizes.end(), retained.begin(), retained.end());
  std::erase(sizes, 0);
  std::int64_t rows = 0;
  for (const auto size : sizes)
    rows += size;
  std::vector<float> weights;
  for (const auto size : sizes) // weights of a task sum to rows / tasks, so the mean over all rows is 1
    weights.insert(weights.end(), static_cast<std::size_t>(size),
                   static_cast<float>(static_cast<double>(rows) / static_cast<double>(std::ssize(sizes) * size)));
  return weights;
}

namespace mneme::osi_fl_method {
namespace {

/// Trains on the new images only (eq. 11), on the images of all tasks from the initial model (eq. 12), or on new and
/// retained images (eq. 16), with the options of [training].
train_job osi_server::training_job(const labeled_images& pool, const context& ctx, const round_info& info) const {
  train_job job{.net = setup_.net,
                .start = options_.keeps_all_rows() ? setup_.initial : weights_only(weights_),
                .samples = ctx.rows_of(pool.images, pool.labels),
                .objective = objective(info),
                .options = options_for_round(setup_.training, setup_.trainable, covered_classes(info), 0, 1),
                .stream = {.seed = setup_.seed, .client = server_client_id, .task = info.task}};
  job.options.update_running_stats = options_.norm == osi_options::frozen_norm::batch;
  if (options_.epoch == osi_options::kept_epoch::best)
    job.observation = best_epoch_observation();
  return job;
}

class_range osi_server::covered_classes(const round_info& info) const {
  return options_.classes == osi_options::loss_classes::all ? class_range{0, setup_.classes} : info.seen_classes;
}

/// OSCAR-R adds lambda / 2 |w - w_(t-1)|^2, or the official penalty, which is omitted in the first task.
loss_ref osi_server::objective(const round_info& info) const {
  if (options_.mode != run_mode::oscar_r)
    return cross_entropy_objective();
  if (options_.penalty == osi_options::change_penalty::sum)
    return proximal_objective(options_.lambda);
  return info.task.value == 0 ? cross_entropy_objective() : weight_change_penalty(*setup_.net, options_.lambda);
}

task<void> osi_server::close_round(server_context& ctx, const round_info& info) {
  auto generating = ctx.run_each(generation_jobs());
  auto generated = co_await generating;
  const auto fresh = collected(generated);
  server_held_bytes_ = std::max(server_held_bytes_, held_bytes(fresh));
  received_.clear();
  if (fresh.size() == 0)
    co_return;

  auto parts = kept_;
  parts.insert(parts.begin(), fresh);
  const auto before = weights_only(weights_);
  auto learning = training_job(together(parts), ctx, info);
  if (options_.weighs_tasks && !kept_.empty())
    learning.annotations.weights =
        std::make_shared<const std::vector<float>>(weights_by_task(fresh.size(), sizes_kept()));
  auto training = ctx.train(std::move(learning));
  auto trained = co_await training;
  weights_ = trained.observed ? trained.observed->at(best_epoch_weights).to(trained.weights->at(flat_weights).device())
                              : trained.weights->at(flat_weights);

  if (options_.keeps_all_rows())
    kept_.push_back(fresh);
  if (options_.retained() == 0)
    co_return;
  const auto judging = options_.moment == score_moment::before ? before : weights_only(weights_);
  auto choosing = chosen(ctx, info, fresh, judging);
  auto positions = co_await choosing;
  kept_.push_back(fresh.at(positions));
}

} // namespace
} // namespace mneme::osi_fl_method

// -- retention of images (eqs. 13-15) ---------------------------------------------------------------------------------

/// E_t,k = argmax of the summed scores over subsets of p images (eq. 14), and their union over the classes (eq. 15).
std::vector<std::int64_t> mneme::retained_rows(std::span<const double> scores, std::span<const std::int64_t> labels,
                                               std::int64_t count) {
  MNEME_CHECK(scores.size() == labels.size(), scores.size(), labels.size());
  std::map<std::int64_t, std::vector<std::int64_t>> by_label;
  for (std::int64_t row = 0; row < std::ssize(labels); ++row)
    by_label[labels[static_cast<std::size_t>(row)]].push_back(row);
  std::vector<std::int64_t> chosen;
  for (auto& [label, rows] : by_label) {
    std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    rows.resize(static_cast<std::size_t>(std::min(count, std::ssize(rows))));
    chosen.insert(chosen.end(), rows.begin(), rows.end());
  }
  return chosen;
}

namespace mneme::osi_fl_method {
namespace {

/// Cross-entropy of each row over the classes `open`.
std::vector<double> losses_of(const extract_output& shown, const at::Tensor& labels, class_range open) {
  const auto logits = shown.logits.cpu().to(at::kDouble).narrow(1, open.low, open.size());
  return doubles_in(-at::log_softmax(logits, 1).gather(1, (labels - open.low).unsqueeze(1)));
}

/// Herding: selects rows of each label so that their mean stays near the class mean (Rebuffi et al. 2017, iCaRL,
/// Algorithm 4).
std::vector<std::int64_t> herded(const at::Tensor& features, const std::vector<std::int64_t>& labels,
                                 std::int64_t count) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_label;
  for (std::int64_t row = 0; row < std::ssize(labels); ++row)
    by_label[labels[static_cast<std::size_t>(row)]].push_back(row);
  std::vector<std::int64_t> chosen;
  for (const auto& [label, rows] : by_label)
    for (const auto place :
         choose_exemplars(features.index_select(0, at::tensor(rows, at::kLong)), count, exemplar_choice::greedy))
      chosen.push_back(rows[static_cast<std::size_t>(place)]);
  return chosen;
}

/// Augmentation of images for scoring.
augmentation_kind osi_server::view() const {
  return options_.view == osi_options::score_view::augmented ? setup_.training.augment : augmentation_kind::none;
}

/// Selects E_t (eqs. 13-15) and returns positions in `fresh`. Scores are gradient norms |d loss / d theta| (eq. 13), or
/// those that `criterion` selects.
task<std::vector<std::int64_t>> osi_server::chosen(server_context& ctx, const round_info& info,
                                                   const labeled_images& fresh, tensors_ref weights) const {
  const auto labels = numbers_in(fresh.labels);
  if (options_.criterion == retention::random) {
    rng_stream draw({.seed = setup_.seed, .purpose = retention_draw, .task = info.task});
    std::vector<double> scores;
    for (std::size_t i = 0; i < labels.size(); ++i)
      scores.push_back(draw.uniform());
    co_return retained_rows(scores, labels, options_.retained());
  }
  if (options_.criterion == retention::gradient_norm) {
    auto job = training_job(fresh, ctx, info);
    job.start = weights;
    job.objective = cross_entropy_objective();
    job.options.augment = view();
    job.options.update_running_stats = false;
    job.options.epochs = 1;
    job.observation = nullptr;
    job.options.result = training_result::row_norms;
    auto measuring = ctx.train(std::move(job));
    auto measured = co_await measuring;
    co_return retained_rows(doubles_in(measured.row_norms), labels, options_.retained());
  }
  extract_job job{.net = setup_.net, .weights = weights, .samples = ctx.rows_of(fresh.images, fresh.labels)};
  job.augment = view();
  job.stream = {.seed = setup_.seed, .purpose = score_view_draw, .task = info.task};
  auto looking = ctx.extract(std::move(job));
  auto shown = co_await looking;
  if (options_.criterion == retention::loss)
    co_return retained_rows(losses_of(shown, fresh.labels, covered_classes(info)), labels, options_.retained());
  co_return herded(shown.features.cpu(), labels, options_.retained());
}

// -- metrics and samples ----------------------------------------------------------------------------------------------

std::map<std::string, double> osi_server::summary_metrics() const {
  std::map<std::uint32_t, std::int64_t> by_client;
  std::int64_t most = 0;
  for (const auto& [from, numbers] : sent_numbers_)
    most = std::max(most, by_client[from.first] += numbers);
  const auto kept = sizes_kept();
  return {{"generated_images", static_cast<double>(generated_)},
          {"retained_images", static_cast<double>(std::accumulate(kept.begin(), kept.end(), std::int64_t{0}))},
          {"paper_params", static_cast<double>(most)}, // number of values that a client sends, as in the paper
          {"client_held_bytes", static_cast<double>(client_held_bytes_)},
          {"server_held_bytes", static_cast<double>(server_held_bytes_)}};
}

/// Returns a row of images for each class.
std::map<std::string, at::Tensor> osi_server::sample_images() const {
  std::vector<at::Tensor> rows;
  for (const auto& [label, images] : shown_)
    rows.push_back(at::cat(images.unbind(0), 2));
  if (rows.empty())
    return {};
  return {{"samples", at::cat(rows, 1)}};
}

std::unique_ptr<server_half> osi_fl::make_server() const {
  return std::make_unique<osi_server>(setup_, options_, image_program_);
}

const strategy_registration line{
    {.name = "osi-fl",
     .summary = "one message of class means per client, a generating server, selective retention (OSI-FL), and OSCAR",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<osi_fl>(); }}};

} // namespace
} // namespace mneme::osi_fl_method
