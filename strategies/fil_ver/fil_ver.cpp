// FIL-VER: federated incremental learning by variational embedding rehearsal (arXiv 2110.09695). Before the first
// round, the server trains an encoder on task 1 (eq. 9; eq. 7 for point embeddings), freezes it and sends it to each
// client once. FedAvg trains only a classifier on the embeddings (eq. 1). A client stores the means mu and log
// deviations of the embeddings of its rows. It trains on new samples z = mu + sigma e (eq. 4) of current and past
// tasks. It also sends a share R_T^(j) of these statistics to the server. The server pools them (eq. 10) and trains the
// averaged classifier on batches from the pool (server-side training).
//
// Official code: none; the paper names no repository. So there is no preset "official", and tests compute the equations
// by hand. The paper has no table of settings.
//
// Ours: Algorithm 1 contradicts the text; as in the text, clients and server also train on old tasks (client_rehearsal,
// pool). Clients train for E epochs, and the server for S_max steps. beta, the weight of the KL divergence summed
// over the embedding, is 1e-5; larger values remove information that later tasks need (docs/results.md). Each row has
// its own statistics, with log deviations in [-6, 3]. The encoder has layers of 32 and 64 filters without padding and
// is trained on all of task 1 (vee_data). Tests use the means (embedding). The pool has 2,400 rows per task, balanced
// by label. Batches are balanced by task, because a growing pool favors early tasks. A client sends only one sample of
// a row, because several samples would reveal the mean (sample_once). The paper's figure of enrolments is not
// available; our enrolment tables reconstruct it for four clients and four tasks. The rows of an absent client are not
// used.
#include "strategies/fil_ver/embedding_pool.hpp"
#include "strategies/fil_ver/embedding_rehearsal.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::fil_ver_method {
namespace {

// Axes: n rows of a client in a task, m rows that it sends, D numbers of an embedding, F features of the encoder. F is
// D for points, and 2 D for normal distributions (means and log deviations).

enum draws : std::uint32_t {
  rehearsal_draw = first_method_purpose,
  material_draw,
  sample_draw,
  pool_draw,
  batch_draw,
  evaluation_draw,
  classifier_draw
};
enum class system_kind : std::uint8_t { ver_stats, ver_sampled, ebr, vanilla };
enum class encoder_rows : std::uint8_t { task_1, enrolled };
enum class embedding_choice : std::uint8_t { mean, sample };
enum class classifier_start : std::uint8_t { shared, own };

struct options : embedding_rehearsal_options {
  system_kind system = system_kind::ver_stats;
  bool server_training = true, client_rehearsal = true;
  std::int64_t server_steps = 50, server_batch = 64;
  double server_learning_rate = 0.05;
  pool_kind pool = pool_kind::reservoir;
  std::int64_t pool_size = 2400; // number of rows per task
  pool_balance pool_batch = pool_balance::task_balanced;
  bool one_z_per_sample = true;
  encoder_rows encoder_data = encoder_rows::task_1;
  embedding_choice embedding = embedding_choice::mean;
  classifier_start start = classifier_start::shared;

  [[nodiscard]] bool points() const { return system == system_kind::ebr; }
  [[nodiscard]] bool rehearses() const { return client_rehearsal && system != system_kind::vanilla; }
  [[nodiscard]] bool sends() const { return server_training && system != system_kind::vanilla; }
};

/// Settings that both halves share.
struct run_settings : split_encoder_net {
  options settings{};
  /// True if clients send points, which are embeddings of EBR or samples of normal distributions.
  [[nodiscard]] bool points_travel() const { return !shape().normal || settings.system == system_kind::ver_sampled; }
};

// -- rehearsal material in uploads ------------------------------------------------------------------------------------

// Tensors of an upload in addition to the weights: "labels" [m] int32 and, depending on the system, "z" (VER-Sampled),
// "embedding" (EBR), or "mu" and "log_sigma" (VER-Stats), [m, D] each. Names end with the task of the rows, as in
// "rehearsal.mu.2". With D = 256, a vector with its label takes 1,028 bytes, and a pair of statistics 2,052.
constexpr std::string_view labels_name = "rehearsal.labels.";

std::string sent_name(const char* tensor, task_id task) {
  return of_task(std::string("rehearsal.") + tensor, task.value);
}

void pack(tensor_map& upload, task_id task, const embedding_rows& rows, const run_settings& run, const rng_key& key) {
  const auto width = run.shape().embedding;
  upload.put(sent_name("labels", task), rows.labels);
  if (run.settings.system == system_kind::ver_sampled) {
    upload.put(sent_name("z", task), sampled(rows, run.shape(), key)); // eq. 4
  } else if (run.shape().normal) {
    upload.put(sent_name("mu", task), rows.features.narrow(1, 0, width).contiguous());
    upload.put(sent_name("log_sigma", task), rows.features.narrow(1, width, width).contiguous());
  } else {
    upload.put(sent_name("embedding", task), rows.features);
  }
}

/// Adds an upload to the pool: R_T is the union of the clients' rows (eq. 10).
void add_to(embedding_pool& pool, const tensor_map& upload) {
  for (const auto& [name, labels] : upload) {
    if (!name.starts_with(labels_name))
      continue;
    const task_id task{static_cast<std::uint32_t>(std::stoul(name.substr(labels_name.size()))) - 1};
    embedding_rows rows{.features = {}, .labels = labels.cpu()};
    for (const auto* points_name : {"z", "embedding"})
      if (const auto* points = upload.find(sent_name(points_name, task)))
        rows.features = points->cpu();
    if (!rows.features.defined())
      rows.features = at::cat({upload.at(sent_name("mu", task)), upload.at(sent_name("log_sigma", task))}, 1).cpu();
    pool.add(task, rows);
  }
}

// -- server half ------------------------------------------------------------------------------------------------------

class fil_ver_server final : public encoder_server {
public:
  explicit fil_ver_server(std::shared_ptr<const run_settings> run)
      : encoder_server(*run, run->settings.encoder, {.frozen = true, .sampled = evaluation_key(*run)}),
        run_(std::move(run)), pool_({.kind = run_->settings.pool,
                                     .rows_max = run_->settings.pool_size,
                                     .labels = run_->whole.task_classes,
                                     .stream = {.seed = run_->whole.seed, .purpose = pool_draw}}) {}

  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value == 0) {
      const bool whole = run_->settings.encoder_data == encoder_rows::task_1;
      const auto samples = whole ? ctx.rows().of_task(info.task) : ctx.rows().of_enrolled(info.task);
      auto training = encoder().train(ctx, samples, info.seen_classes); // eq. 9
      co_await training;
    }
    co_return task_plan{};
  }

  /// Averages the classifier (eq. 1) and adds the rehearsal rows to the pool under their task.
  void fold(const delivery& in) override {
    auto learned = in;
    learned.upload = weights_only(in.upload->at(flat_weights));
    averaging_server::fold(learned);
    add_to(pool_, *in.upload);
  }

  /// FedAvg, then server-side training (Algorithm 1).
  task<void> close_round(server_context& ctx, const round_info& info) override {
    average();
    if (!run_->settings.sends() || run_->settings.server_steps == 0 || pool_.empty())
      co_return;
    auto training = ctx.train(training_on_pool(info));
    auto trained = co_await training;
    set_weights(trained.weights->at(flat_weights));
  }

  std::map<std::string, double> summary_metrics() const override {
    auto figures = encoder_server::summary_metrics();
    if (run_->settings.sends())
      figures["pool_rows"] = static_cast<double>(pool_.size());
    return figures;
  }

  void persist(archive& state) override {
    encoder_server::persist(state);
    state(pool_);
  }

private:
  static std::optional<rng_key> evaluation_key(const run_settings& run) {
    if (run.settings.embedding == embedding_choice::mean)
      return {};
    return rng_key{.seed = run.whole.seed, .purpose = evaluation_draw};
  }

  /// S_max SGD steps on batches from the pool. Each use of statistics draws new samples.
  [[nodiscard]] train_job training_on_pool(const round_info& info) const {
    const auto& settings = run_->settings;
    const rng_key batches{
        .seed = run_->whole.seed, .purpose = batch_draw, .task = info.task, .index = info.round.value};
    const auto rows = pool_.drawn(settings.server_steps, settings.server_batch, settings.pool_batch, batches);
    train_job job{.net = run_->learned.net,
                  .start = weights_only(weights()),
                  .samples = training_set({{rows}}, run_->shape(), run_->points_travel()),
                  .objective = cross_entropy_objective(),
                  .stream = {.seed = run_->whole.seed,
                             .client = server_client_id,
                             .task = info.task,
                             .visit = static_cast<std::uint32_t>(info.round.value) + 1}};
    job.options = {.batch_rows = settings.server_batch,
                   .learning_rate = settings.server_learning_rate,
                   .in_order = true,
                   .classes = info.seen_classes};
    return job;
  }

  std::shared_ptr<const run_settings> run_;
  embedding_pool pool_;
};

// -- client half ------------------------------------------------------------------------------------------------------

// A client's memory contains the features and labels of each task, from its first delivered round in the task on
// ("features.1", "labels.1"). It also records which rows of the current task the client has sent ("sent").

class fil_ver final : public strategy {
public:
  void keys(key_table& table) override;
  method_needs needs() const override {
    return {.server_trains_on_rows = options_.encoder.epochs > 0,
            .defaults = options_.points() ? "[model]\nname = \"ebr\"\n" : "[model]\nname = \"vee\"\n"};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<fil_ver_server>(run_); }

private:
  [[nodiscard]] sample_view rows_to_train(const client_context& ctx, const tensor_map& memory,
                                          std::uint32_t task) const;
  void add_material(const client_context& ctx, task_id task, tensor_map& memory, tensor_map& upload) const;
  [[nodiscard]] std::string encoder_error(const embedding_model& net) const;

  options options_;
  std::shared_ptr<const run_settings> run_;
};

void fil_ver::prepare(const method_setup& setup) {
  auto parts = split_encoder(setup, true);
  if (options_.start == classifier_start::own) {
    rng_stream draw({.seed = setup.seed, .purpose = classifier_draw});
    parts.learned.initial = weights_only(initial_weights(*parts.learned.net, draw.bits64()));
  }
  run_ = std::make_shared<const run_settings>(run_settings{std::move(parts), options_});
}

task<client_result> fil_ver::client_round(client_context& ctx, const broadcast& in) const {
  const auto task = in.info.task.value;
  auto memory = std::make_shared<tensor_map>();
  if (options_.rehearses() || load_embeddings(ctx.memory(), "", task).size() > 0)
    *memory = ctx.memory();

  // The encoder is frozen, so the rows of a task are encoded once.
  if (load_embeddings(*memory, "", task).size() == 0) {
    extract_job looking{.net = run_->net->encoder(), .weights = in.initial_payload, .samples = ctx.samples()};
    looking.logits = false;
    auto look = ctx.extract(std::move(looking));
    auto encoded = co_await look;
    store_embeddings(*memory, "", task, on_host(encoded));
    memory->put("sent", at::zeros({encoded.features.size(0)}, at::kByte));
  }

  // Trains the classifier on new samples of current and past tasks (eq. 4).
  auto learning = ctx.train(local_training(
      run_->learned, ctx, in, {.samples = rows_to_train(ctx, *memory, task), .classes = in.info.seen_classes}));
  auto learned = co_await learning;

  auto upload = std::make_shared<tensor_map>(*learned.weights);
  if (options_.sends())
    add_material(ctx, in.info.task, *memory, *upload);
  co_return client_result{.upload = upload, .memory = memory, .rows = ctx.samples().size()};
}

/// Returns the rows of the current task, and a number of rows of each past task that depends on the number of current
/// rows.
sample_view fil_ver::rows_to_train(const client_context& ctx, const tensor_map& memory, std::uint32_t task) const {
  std::vector<embedding_rows> parts{load_embeddings(memory, "", task)};
  for (std::uint32_t past = 0; past < task && options_.rehearses(); ++past) {
    const auto old = load_embeddings(memory, "", past);
    const auto count = options_.rehearsed(parts.front().size(), old.size(), options_.points());
    if (count == 0)
      continue;
    auto key = ctx.stream(rehearsal_draw);
    key.index = past;
    parts.push_back(old.at(draw_positions(old.size(), count, key)));
  }
  return training_set(parts, run_->shape(), !run_->shape().normal);
}

/// R_T^(j): a share of the current rows. Points and statistics are sent once, because repeating them adds no
/// information. Samples of a row are sent once by default, because several would reveal its mean.
void fil_ver::add_material(const client_context& ctx, task_id task, tensor_map& memory, tensor_map& upload) const {
  const auto current = load_embeddings(memory, "", task.value);
  const bool sent_once = options_.system != system_kind::ver_sampled || options_.one_z_per_sample;
  auto sent = memory.at("sent").clone();
  std::vector<std::int64_t> left, chosen;
  for (std::int64_t i = 0; i < current.size(); ++i)
    if (!sent_once || sent.const_data_ptr<std::uint8_t>()[i] == 0)
      left.push_back(i);
  const auto count = std::min(share_of(options_.share(options_.points()), current.size()), std::ssize(left));
  if (count == 0)
    return;
  for (const auto place : draw_positions(std::ssize(left), count, ctx.stream(material_draw))) {
    chosen.push_back(left[static_cast<std::size_t>(place)]);
    sent.mutable_data_ptr<std::uint8_t>()[chosen.back()] = 1;
  }
  pack(upload, task, current.at(chosen), *run_, ctx.stream(sample_draw));
  memory.put("sent", sent);
}

std::string fil_ver::encoder_error(const embedding_model& net) const {
  const bool normal = net.shape().normal;
  if (options_.points() && normal)
    return fmt::format("system = \"ebr\" rehearses points, but the encoder of '{}' returns means and deviations; "
                       "expected model.name = \"ebr\"",
                       net.identity());
  if (options_.system != system_kind::vanilla && !options_.points() && !normal)
    return fmt::format("system = \"ver-stats\" and \"ver-sampled\" need means and deviations, but the encoder of '{}' "
                       "returns points; expected model.name = \"vee\"",
                       net.identity());
  return {};
}

diagnostics fil_ver::check(const method_setup& setup) const {
  auto errors = validate_net(setup, "fil-ver", "model.name = \"vee\", or \"ebr\" for system = \"ebr\"");
  append(errors, reject_batch_keys(setup, "the server trains for strategy.server_steps steps"));
  if (const auto net = as_embedding_model(setup.net))
    if (const auto reason = encoder_error(*net); !reason.empty())
      errors.push_back({"model.name", reason});
  if (options_.sends() && options_.pool == pool_kind::reservoir && options_.pool_size < options_.server_batch)
    errors.push_back({"strategy.pool_size",
                      fmt::format("strategy.pool_size = {}: expected at least one batch, strategy.server_batch = {}",
                                  options_.pool_size, options_.server_batch)});
  return errors;
}

void fil_ver::keys(key_table& table) {
  table.choice("system", options_.system,
               {{"ver-stats", system_kind::ver_stats},
                {"ver-sampled", system_kind::ver_sampled},
                {"ebr", system_kind::ebr},
                {"vanilla", system_kind::vanilla}},
               "Rehearsed and sent data: means and deviations of embeddings, samples from them, point embeddings, or "
               "nothing.");
  table.flag("server_training", options_.server_training,
             "Clients send embeddings, and the server trains on the received ones.");
  table.flag("client_rehearsal", options_.client_rehearsal, "Clients train on their past tasks, too.");
  options_.beta_key(table);
  table.integer("server_steps", options_.server_steps, {.low = 0, .high = 100'000}, "Steps of the server per round.");
  table.integer("server_batch", options_.server_batch, {.low = 1, .high = 65'536}, "Rows per server step.");
  table.number("server_learning_rate", options_.server_learning_rate, {.low = 0.0},
               "Learning rate of the server's steps (plain SGD).");
  table.number(
      "rehearsal_ratio", options_.ratio, {.low = 0.0, .high = 1.0},
      "Rows that are rehearsed of each past task, and rows that are sent, in a round, as a share of the current "
      "task's rows.");
  table.choice("pool", options_.pool, {{"reservoir", pool_kind::reservoir}, {"all", pool_kind::everything}},
               "Embeddings that the server keeps: a uniform sample per task and label, or all.");
  table.integer("pool_size", options_.pool_size, {.low = 1, .high = 100'000'000},
                "Maximum number of rows per task, if pool = \"reservoir\".");
  table.choice("pool_batch", options_.pool_batch,
               {{"task-balanced", pool_balance::task_balanced}, {"uniform", pool_balance::uniform}},
               "Batches of the server: the same number of rows of every task, or rows drawn uniformly from the pool.");
  table.flag("sample_once", options_.one_z_per_sample,
             "Send one sample of a row per run, because several would reveal its mean (system = \"ver-sampled\").");
  options_.vector_keys(table);
  table.choice("vee_data", options_.encoder_data,
               {{"task1-all", encoder_rows::task_1}, {"enrolled", encoder_rows::enrolled}},
               "Training data of the encoder: all of task 1, or the rows of clients enrolled in it.");
  options_.training_keys(table);
  table.choice(
      "classifier_start", options_.start, {{"shared", classifier_start::shared}, {"own", classifier_start::own}},
      "Initial weights of the federated classifier: those with which the encoder's training started (random or "
      "from a file), so that embeddings fit the classifier; or other random values.");
  table.choice("embedding", options_.embedding,
               {{"mean", embedding_choice::mean}, {"sample", embedding_choice::sample}},
               "Test input of the classifier: the means, or a sample for each test row, drawn by key.");
}

const strategy_registration line{
    {.name = "fil-ver",
     .summary = "rehearsal of variational embeddings, server-side training, enrolment (FIL-VER, arXiv 2110.09695)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fil_ver>(); }}};

} // namespace
} // namespace mneme::fil_ver_method
