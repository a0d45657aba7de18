// OSI-FL: one-shot incremental federated learning with a generating server. A client speaks once: it sends the mean
// embedding of each of its classes (eq. 9), and is not heard again. The server makes images under these conditions by
// latent diffusion with guidance (eqs. 2-4), trains the global model on them and on what it has retained of earlier
// tasks (eq. 16), and then retains the p images of each class whose loss has the largest gradients (eqs. 13-15).
//
// - `osi-fl`: all of it;
// - `oscar`, the ceiling: all images of all tasks so far are kept, and every task trains anew from the initial model on
//   them, each task with the same weight (eq. 12);
// - `oscar-r`: nothing is retained, and lambda / 2 |w - w_(t-1)|^2 holds the model back;
// - `oscar-il`: nothing is retained (eq. 11).
//
// What describes images is a captioner with a text encoder, where keys name their modules: `sd77x768` and Stable
// Diffusion as the authors' code has it, or `embed512` as the paper says and the small generator trained on such
// embeddings. Without them it is an encoder, trained with the generator on rows that no client holds and sent to each
// client once. Where the paper is silent or says two things, ours:
// - p images of each class and task, of all clients together; the scores are of theta_(t-1), as eq. 13 prints
//   (`moment`), by norms of gradients of what is trained (`criterion`), on the images as they are;
// - the loss covers the classes of tasks opened so far;
// - in eq. 12, too, each task counts alike.
#include "strategies/shared/exemplar_selection.hpp"
#include "strategies/shared/latent_generator.hpp"
#include "strategies/shared/parts/picture_parts.hpp"
#include "strategies/shared/retained_rows.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>
namespace mneme {
namespace {
// Axes: K classes of an upload, E numbers of a condition, Z images of a client and class, N images of a task, P weights
// of the global model, D features.

enum draws : std::uint32_t { summary_draw = first_method_purpose, generation_draw, retention_draw };
enum class run_mode : std::uint8_t { osi_fl, oscar, oscar_r, oscar_il };
enum class condition_kind : std::uint8_t { embed512, sd77x768 };
enum class retention : std::uint8_t { gradient_norm, loss, random, herding };
enum class score_moment : std::uint8_t { before, after };

struct options {
  run_mode mode = run_mode::osi_fl;
  condition_kind condition = condition_kind::embed512;
  std::int64_t p = 5;
  retention criterion = retention::gradient_norm;
  score_moment moment = score_moment::before;
  bool weighs_tasks = true; // eq. 16; else all rows alike
  double lambda = 0.1;
  generator_settings generator{};
  picture_parts parts{};
  std::vector<std::int64_t> shape{}; // of a condition: tokens, numbers of each; none: as the condition's name says

  [[nodiscard]] bool uses_diffusion_parts() const { return condition == condition_kind::sd77x768; }
  [[nodiscard]] bool captions() const { return uses_diffusion_parts() || parts.describes(); }
  [[nodiscard]] condition_shape condition_numbers() const {
    if (shape.size() == 2)
      return {.tokens = shape[0], .width = shape[1]};
    return uses_diffusion_parts() ? condition_shape{.tokens = 77, .width = 768} : condition_shape{};
  }
  [[nodiscard]] std::int64_t retained() const { return mode == run_mode::osi_fl ? p : 0; }
  [[nodiscard]] bool keeps_everything() const { return mode == run_mode::oscar; }
};

/// Images with their classes, as they travel to jobs.
struct labelled_images {
  at::Tensor images{}; // [N, C, H, W] uint8
  at::Tensor labels{}; // [N] int64
  [[nodiscard]] std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
  [[nodiscard]] std::int64_t bytes() const {
    return size() == 0 ? 0 : static_cast<std::int64_t>(images.nbytes() + labels.nbytes());
  }
  [[nodiscard]] labelled_images at(const std::vector<std::int64_t>& positions) const {
    const auto index = at::tensor(positions, at::kLong);
    return {.images = images.index_select(0, index), .labels = labels.index_select(0, index)};
  }
  void persist(archive& state) { state(images)(labels); }
};

labelled_images together(const std::vector<labelled_images>& parts) {
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

/// Cross-entropy of each row over the open classes.
std::vector<double> losses_of(const extract_output& seen, const at::Tensor& labels, class_range open) {
  const auto logits = seen.logits.cpu().to(at::kDouble).narrow(1, open.low, open.size());
  return doubles_in(-at::log_softmax(logits, 1).gather(1, (labels - open.low).unsqueeze(1)));
}

/// The rows of each label whose mean stays near the class mean (Rebuffi et al. 2017, iCaRL, Algorithm 4).
std::vector<std::int64_t> herded(const at::Tensor& features, const std::vector<std::int64_t>& labels,
                                 std::int64_t count) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_label;
  for (std::int64_t row = 0; row < std::ssize(labels); ++row)
    by_label[labels[static_cast<std::size_t>(row)]].push_back(row);
  std::vector<std::int64_t> chosen;
  for (const auto& [label, rows] : by_label)
    for (const auto place :
         chosen_exemplars(features.index_select(0, at::tensor(rows, at::kLong)), count, exemplar_choice::greedy))
      chosen.push_back(rows[static_cast<std::size_t>(place)]);
  return chosen;
}

// -- an upload --------------------------------------------------------------------------------------------------------

// "task" [1], "classes" [K] and "counts" [K] int32, "means" [K, E] float32: 4 (2 + E) bytes a class, and 4.

tensors_ref packed(const program_output& seen, task_id task) {
  const auto counts = seen.out->at("counts").cpu();
  const auto classes = counts.nonzero().flatten();
  auto upload = std::make_shared<tensor_map>();
  upload->put("task", at::tensor({static_cast<std::int64_t>(task.value)}, at::kInt));
  upload->put("classes", classes.to(at::kInt));
  upload->put("counts", counts.index_select(0, classes).to(at::kInt));
  upload->put("means", seen.out->at("means").index_select(0, classes.to(seen.out->at("means").device())));
  return upload;
}

// -- server half ------------------------------------------------------------------------------------------------------

using speaker = std::pair<std::uint32_t, std::uint32_t>; // client and task

class osi_server final : public server_half {
public:
  /// @param pictures makes images of a condition [E]; null: the generator that is trained in the run does
  osi_server(const method_setup& setup, const options& with, program_ref pictures)
      : setup_(setup), with_(with), generator_(setup, with.generator), pictures_(std::move(pictures)),
        weights_(setup.initial->at(flat_weights)) {}

  /// A task is one round with everybody who is there: whoever has rows speaks, once.
  task<task_plan> open_task(server_context& ctx, const round_place& place) override {
    if (place.task.value == 0 && !pictures_) {
      auto training = generator_.train(ctx);
      co_await training;
    }
    co_return task_plan{.rounds = 1, .everybody = true};
  }
  broadcast open_round(const round_place&) override {
    return {.place = {},
            .weights = std::make_shared<const tensor_map>(),
            .extra = nullptr,
            .first_contact = generator_.is_trained() && !with_.captions() ? generator_.encoder() : nullptr};
  }

  /// Kept until the round closes, because images are made for all of them together; the order of arrival has no effect.
  void fold(const delivery& in) override {
    const speaker from{in.from.value, static_cast<std::uint32_t>(numbers_in(in.upload->at("task")).front())};
    if (!sent_numbers_.try_emplace(from, in.upload->at("means").numel()).second)
      throw std::runtime_error(fmt::format("client {} has spoken in task {} before; a client of a one-shot federation "
                                           "sends one message",
                                           from.first, from.second + 1));
    received_[from] = in.upload;
    const auto rows = in.upload->at("counts").sum().item<std::int64_t>();
    const auto encoder = generator_.is_trained() && !with_.captions() ? generator_.encoder()->bytes() : 0;
    const auto pixels = setup_.shape[0] * setup_.shape[1] * setup_.shape[2];
    client_held_bytes_ = std::max(client_held_bytes_, rows * pixels + encoder + in.upload->bytes());
  }

  task<void> close_round(server_context& ctx, const round_place& place) override;
  predictor predict() const override { return {.net = setup_.net, .weights = weights_only(weights_)}; }
  std::map<std::string, double> figures() const override;
  std::map<std::string, at::Tensor> pictures() const override;
  void persist(archive& state) override {
    state(generator_).frozen(weights_)(sent_numbers_)(received_)(kept_)(shown_)(generated_);
    state(client_held_bytes_)(server_held_bytes_);
  }

private:
  [[nodiscard]] std::vector<program_job> generation_jobs() const;
  [[nodiscard]] program_job generation(const at::Tensor& condition, const rng_key& stream) const;
  [[nodiscard]] labelled_images collected(const std::vector<program_output>& made);
  [[nodiscard]] train_job training_job(const labelled_images& pool, const context& ctx, const round_place& place) const;
  [[nodiscard]] std::vector<std::int64_t> sizes_kept() const;
  [[nodiscard]] std::int64_t held_bytes(const labelled_images& fresh) const;
  task<std::vector<std::int64_t>> chosen(server_context& ctx, const round_place& place, const labelled_images& fresh,
                                         tensors_ref weights) const;

  method_setup setup_;
  options with_;
  latent_generator generator_;
  program_ref pictures_;
  at::Tensor weights_;                           // [P]
  std::map<speaker, std::int64_t> sent_numbers_; // of everybody who has spoken
  std::map<speaker, tensors_ref> received_;      // in the open round
  std::vector<labelled_images> kept_;            // of each task that is over
  std::map<std::int64_t, at::Tensor> shown_;     // by class, the first images made of it
  std::int64_t generated_ = 0;
  // The most that a client holds: its rows as bytes, the encoder, its message; and the server: all nets, the messages
  // of a round, images made and kept, the global model. What computing takes comes on top, and is the machine's.
  std::int64_t client_held_bytes_ = 0, server_held_bytes_ = 0;
};

program_job osi_server::generation(const at::Tensor& condition, const rng_key& stream) const {
  if (!pictures_)
    return generator_.generation(condition, stream);
  auto in = std::make_shared<tensor_map>();
  in->put("condition", condition);
  return {.body = pictures_, .in = in, .stream = stream};
}

/// One for each client and class, in their order.
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

/// The images of all clients in one: client by client, class by class.
labelled_images osi_server::collected(const std::vector<program_output>& made) {
  constexpr std::int64_t shown_of_class = 10;
  std::vector<labelled_images> parts;
  for (const auto& [from, upload] : received_)
    for (const auto label : numbers_in(upload->at("classes"))) {
      const auto images = made[parts.size()].out->at("images").cpu();
      parts.push_back({.images = images, .labels = at::full({images.size(0)}, label, at::kLong)});
      generated_ += images.size(0);
      if (!shown_.contains(label))
        shown_[label] = images.narrow(0, 0, std::min(shown_of_class, images.size(0))).clone();
    }
  return parts.empty() ? labelled_images{} : together(parts);
}

std::vector<std::int64_t> osi_server::sizes_kept() const {
  std::vector<std::int64_t> sizes;
  for (const auto& task : kept_)
    sizes.push_back(task.size());
  return sizes;
}

std::int64_t osi_server::held_bytes(const labelled_images& fresh) const {
  auto held = static_cast<std::int64_t>(weights_.nbytes()) + generator_.bytes() + fresh.bytes();
  for (const auto& [from, upload] : received_)
    held += upload->bytes();
  for (const auto& task : kept_)
    held += task.bytes();
  return held;
}

/// J_t (eq. 16), eq. 12 where everything is kept, or eq. 11, by the scenario's training.
train_job osi_server::training_job(const labelled_images& pool, const context& ctx, const round_place& place) const {
  constexpr client_id server_itself{std::numeric_limits<std::uint32_t>::max()};
  return {.net = setup_.net,
          .start = with_.keeps_everything() ? setup_.initial : weights_only(weights_),
          .samples = ctx.rows_of(pool.images, pool.labels),
          .objective = with_.mode == run_mode::oscar_r ? proximal_objective(with_.lambda) : cross_entropy_objective(),
          .options = options_for_round(setup_.training, setup_.trainable, place.opened, 0, 1),
          .stream = {.seed = setup_.seed, .client = server_itself, .task = place.task}};
}

task<void> osi_server::close_round(server_context& ctx, const round_place& place) {
  auto generating = ctx.run_each(generation_jobs());
  auto made = co_await generating;
  const auto fresh = collected(made);
  server_held_bytes_ = std::max(server_held_bytes_, held_bytes(fresh));
  received_.clear();
  if (fresh.size() == 0)
    co_return;

  auto parts = kept_;
  parts.insert(parts.begin(), fresh);
  const auto before = weights_only(weights_);
  auto learning = training_job(together(parts), ctx, place);
  if (with_.weighs_tasks && !kept_.empty())
    learning.notes.weights = std::make_shared<const std::vector<float>>(weights_by_task(fresh.size(), sizes_kept()));
  auto training = ctx.train(std::move(learning));
  auto trained = co_await training;
  weights_ = trained.weights->at(flat_weights);

  if (with_.keeps_everything())
    kept_.push_back(fresh);
  if (with_.retained() == 0)
    co_return;
  const auto judging = with_.moment == score_moment::before ? before : weights_only(weights_);
  auto choosing = chosen(ctx, place, fresh, judging);
  auto positions = co_await choosing;
  kept_.push_back(fresh.at(positions));
}

/// E_t (eqs. 13-15): positions within `fresh`.
task<std::vector<std::int64_t>> osi_server::chosen(server_context& ctx, const round_place& place,
                                                   const labelled_images& fresh, tensors_ref weights) const {
  const auto labels = numbers_in(fresh.labels);
  if (with_.criterion == retention::random) {
    rng_stream draw({.seed = setup_.seed, .purpose = retention_draw, .task = place.task});
    std::vector<double> scores;
    for (std::size_t i = 0; i < labels.size(); ++i)
      scores.push_back(draw.uniform());
    co_return retained_rows(scores, labels, with_.retained());
  }
  if (with_.criterion == retention::gradient_norm) {
    auto job = training_job(fresh, ctx, place);
    job.start = weights;
    job.objective = cross_entropy_objective();
    job.options.augment = augmentation_kind::none;
    job.options.epochs = 1;
    job.options.result = training_result::row_norms;
    auto measuring = ctx.train(std::move(job));
    auto measured = co_await measuring;
    co_return retained_rows(doubles_in(measured.row_norms), labels, with_.retained());
  }
  extract_job job{.net = setup_.net, .weights = weights, .samples = ctx.rows_of(fresh.images, fresh.labels)};
  auto looking = ctx.extract(std::move(job));
  auto seen = co_await looking;
  if (with_.criterion == retention::loss)
    co_return retained_rows(losses_of(seen, fresh.labels, place.opened), labels, with_.retained());
  co_return herded(seen.features.cpu(), labels, with_.retained());
}

std::map<std::string, double> osi_server::figures() const {
  std::map<std::uint32_t, std::int64_t> by_client;
  std::int64_t most = 0;
  for (const auto& [from, numbers] : sent_numbers_)
    most = std::max(most, by_client[from.first] += numbers);
  const auto kept = sizes_kept();
  return {{"generated_images", static_cast<double>(generated_)},
          {"retained_images", static_cast<double>(std::accumulate(kept.begin(), kept.end(), std::int64_t{0}))},
          {"paper_params", static_cast<double>(most)}, // numbers that a client sends, as the paper counts them
          {"client_held_bytes", static_cast<double>(client_held_bytes_)},
          {"server_held_bytes", static_cast<double>(server_held_bytes_)}};
}

/// A row of pictures for each class.
std::map<std::string, at::Tensor> osi_server::pictures() const {
  std::vector<at::Tensor> rows;
  for (const auto& [label, images] : shown_)
    rows.push_back(at::cat(images.unbind(0), 2));
  if (rows.empty())
    return {};
  return {{"samples", at::cat(rows, 1)}};
}

// -- client half ------------------------------------------------------------------------------------------------------

class osi_fl final : public strategy {
public:
  void keys(key_table& table) override;
  /// Images are made of all uploads of a round together.
  method_needs needs() const override {
    const std::string share = with_.uses_diffusion_parts() ? "" : "public_share = 0.15\n";
    method_needs needed{
        .round_barrier = true, .feature_folder = cache_, .defaults = "[partition]\nover = \"enrolled\"\n" + share};
    with_.parts.add_to(needed);
    return needed;
  }
  std::vector<preset> presets() const override {
    return {{.name = "paper",
             .meaning = "training of the server as in the paper's table: Adam at 1e-3, decay 1e-4, 20 epochs, batches "
                        "of 256",
             .toml = "[training]\noptimizer = \"adam\"\nlearning_rate = 1e-3\nweight_decay = 1e-4\nepochs = 20\n"
                     "batch = 256\n"}};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<osi_server>(setup_, with_, pictures_);
  }

private:
  method_setup setup_;
  options with_;
  std::filesystem::path cache_;
  program_ref summary_, pictures_; // made once, in prepare()
};

void osi_fl::prepare(const method_setup& setup) {
  setup_ = setup;
  if (!with_.captions()) {
    summary_ = class_means(latent_generator::shape_of(setup), setup.classes);
    return;
  }
  const auto describing = with_.parts.made_captioner(setup);
  const pixel_normalisation pixels{.scale = setup.scale, .shift = setup.shift};
  summary_ = described_class_means(describing, pixels, setup.classes);
  const auto& sampling = with_.generator.sampling;
  if (with_.uses_diffusion_parts())
    pictures_ = guided_pictures(with_.parts.made_diffusion(setup, sampling.steps, sampling.guidance), describing,
                                setup.shape, sampling.images);
  else {
    with_.generator.embedding = describing->embedding_width();
    with_.generator.describing = described_rows(describing, pixels);
  }
}

/// Describes each image, and sends the mean of each class (eq. 9). Nothing is trained, nothing remembered.
task<client_result> osi_fl::client_round(client_context& ctx, const broadcast& in) const {
  program_job job{
      .body = summary_, .in = in.first_contact, .samples = ctx.samples(), .stream = ctx.stream(summary_draw)};
  job.rows = ctx.samples().size();
  auto summing = ctx.run(std::move(job));
  auto summed = co_await summing;
  co_return client_result{.upload = packed(summed, in.place.task), .memory = nullptr, .rows = ctx.samples().size()};
}

diagnostics osi_fl::check(const method_setup& setup) const {
  diagnostics wrong;
  if (setup.net->classes() == 0)
    wrong.push_back({"model.name", fmt::format("'{}' has no head, so there is nothing to train; every other model has "
                                               "one",
                                               setup.net->identity())});
  if (setup.tokens > 0)
    wrong.push_back({"data.name", "the generator makes images, and the data are rows of tokens; expected images"});
  const std::string once = ": a client speaks once in a task, which clients of the one before do again; expected ";
  if (setup.transition == task_transition::staggered)
    wrong.push_back({"tasks.transition", "tasks.transition = \"staggered\"" + once + "\"round\""});
  if (setup.staying_share > 0.0)
    wrong.push_back({"tasks.staying_share", "tasks.staying_share > 0" + once + "0"});
  if (setup.public_rows == 0 && !with_.uses_diffusion_parts())
    wrong.push_back({"partition.public_share",
                     "partition.public_share = 0: the generator is trained on rows that no client holds, and there are "
                     "none; expected a share such as 0.15"});
  if (with_.generator.matches_moments && with_.captions())
    wrong.push_back({"strategy.match_moments",
                     "no effect where a captioner describes rows: the encoder of the run tells which kind a condition "
                     "stands for; leave the key away"});
  if (!with_.shape.empty() && (with_.shape.size() != 2 || !with_.captions()))
    wrong.push_back({"strategy.condition_shape", with_.captions() ? "expected two numbers, tokens and numbers of each"
                                                                  : "no effect without the modules of a captioner"});
  else if (with_.captions())
    for (auto& found : with_.parts.check(setup, with_.condition_numbers(), with_.uses_diffusion_parts()))
      wrong.push_back(std::move(found));
  return wrong;
}

void osi_fl::keys(key_table& table) {
  table.choice("mode", with_.mode,
               {{"osi-fl", run_mode::osi_fl},
                {"oscar", run_mode::oscar},
                {"oscar-r", run_mode::oscar_r},
                {"oscar-il", run_mode::oscar_il}},
               "Selected images are retained; all are, and each task trains anew; the model is held back; nothing.");
  table.choice("condition", with_.condition,
               {{"embed512", condition_kind::embed512}, {"sd77x768", condition_kind::sd77x768}},
               "What a client sends of a class and the generator is told: 512 numbers, or 77 tokens of 768.");
  table.integers("condition_shape", with_.shape, {.low = 1, .high = 100'000},
                 "Tokens, and numbers of each, of modules that have others than the condition's name says.");
  with_.parts.keys(table);
  table.integer("p", with_.p, {.low = 0, .high = 1'000'000}, "osi-fl: images retained of each class and task.");
  table.choice("criterion", with_.criterion,
               {{"gradient-norm", retention::gradient_norm},
                {"loss", retention::loss},
                {"random", retention::random},
                {"herding", retention::herding}},
               "osi-fl: which are retained: those of the largest gradient or loss, any, or those near the class mean.");
  table.choice("moment", with_.moment, {{"before", score_moment::before}, {"after", score_moment::after}},
               "osi-fl: the model that judges them: the one before the task was learnt, or after.");
  table.choice("replay", with_.weighs_tasks, {{"eq16", true}, {"concat", false}},
               "Whether each earlier task weighs as much as the new one, or each image as much as any other.");
  table.number("lambda", with_.lambda, {.low = 0.0}, "oscar-r: weight of the penalty on changes of the model.");
  auto& made = with_.generator;
  table.integer("images", made.sampling.images, {.low = 1, .high = 100'000}, "Images made for each client and class.");
  table.integer("candidates", made.sampling.candidates, {.low = 1, .high = 1'000},
                "Images made for each that is kept: the encoder keeps those that it recognises; 1: all are kept.");
  table.number("guidance", made.sampling.guidance, {.low = 0.0, .high = 100.0},
               "w of unconditional + w (conditional - unconditional); 1: the condition alone.");
  table.integer("sampling_steps", made.sampling.steps, {.low = 2, .high = diffusion_times}, "Steps of DDIM.");
  table.integer("components", made.components, {.low = 1, .high = 100'000},
                "Principal components of an image, which are what is generated; no more than there are pixels.");
  table.flag("match_moments", made.matches_moments,
             "Whether what is generated of a kind is given the mean and covariance of its public rows' components.");
  table.integer("encoder_passes", made.encoder_passes, {.low = 1, .high = 100'000},
                "Passes over the public rows in which the encoder is trained.");
  table.integer("component_passes", made.component_passes, {.low = 1, .high = 100'000},
                "The same for the principal components.");
  table.integer("denoiser_passes", made.denoiser_passes, {.low = 1, .high = 100'000}, "The same for the denoiser.");
  table.path("generator_cache", cache_,
             "Where what training has made is kept for later runs, by all that it follows from; empty: nowhere.");
  table.integer("generator_batch", made.batch, {.low = 1, .high = 65'536}, "Rows of a step of these three.");
}

const strategy_registration line{
    {.name = "osi-fl",
     .summary = "one message of class means per client, a generating server, selective retention (OSI-FL), and OSCAR",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<osi_fl>(); }}};

} // namespace
} // namespace mneme
