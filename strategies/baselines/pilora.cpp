// PILoRA: H. Guo, F. Zhu, W. Liu, X.-Y. Zhang and C.-L. Liu, "PILoRA: Prototype Guided Incremental LoRA for Federated
// Class-Incremental Learning", ECCV 2024, and its public code. A frozen transformer learns a low-rank part of queries
// and values for each task, and a centre c per class in place of a head. With the distances
//     dist_c = |f(x) - c| / sqrt(d)
// a client minimises, by Adam with a rate of their own for the low-rank parts,
//     L = CE(-dist, y) + .001 dist_y + .01 sum |A| + .5 sum_{s < t} sum |A^s A^T|
// over all classes of the run; centres of the present task alone learn. It sends both, and the mean f of its rows of
// each class as it met them in training. The server averages low-rank parts by rows; of each centre, it takes the mean
// of what clients send weighted by how near it lies to the means of all (center_weights). The parts of earlier tasks
// stay as they are, and each task begins with a new one, B = 0.
//
// As released, the evaluated net has room for one part, which stays that of task 1: evaluate = "released". The text
// sums parts over tasks, which is the default here. Ours: a client without rows keeps its word in the mean of centres,
// as in the program; a class that no client has moves to the plain mean, where the program's weights of 0.1 fit ten
// clients only; the split of rows is one for the whole task, where the program draws it anew for each client and round;
// nothing is stopped early by test rows.
#include "runtime/models/low_rank_vit.hpp"
#include "strategies/baselines/pilora_parts.hpp"
#include "strategies/baselines/prompting.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::pilora_method {
namespace {

// Axes: d channels, r rank, t earlier tasks, c classes of the task, n of them of which a client has rows.

enum draws : std::uint32_t { low_rank_draw = first_method_purpose };
enum class evaluated_parts : std::uint8_t { sum, first_and_present, released };

constexpr const char* task_centers = "centers";      // [c, d]
constexpr const char* earlier_centers = "earlier";   // [classes of earlier tasks, d]
constexpr const char* class_means = "means";         // [n, d]
constexpr const char* classes_of_means = "means.of"; // [n] int64, from 0 within the task

struct options {
  prompt_shape parts{.form = prompt_form::low_rank, .blocks = {0}};
  pilora_weights weights{};
  double low_rank_rate = 1e-5, temperature = 0.2;
  evaluated_parts evaluate = evaluated_parts::sum;
  bool late_schedule = false;
};

/// Settings that both halves share.
struct run_settings {
  options with{};
  method_setup setup{};
  std::shared_ptr<const low_rank_vit> net{};

  [[nodiscard]] const parameter& entry(std::size_t place) const { return net->layout()[place]; }
  [[nodiscard]] const parameter& centers() const { return entry(net->centers()); }
  /// Parameters of the low-rank parts: A and B of queries and values, block by block.
  [[nodiscard]] std::vector<parameter> low_rank() const {
    std::vector<parameter> entries;
    for (const auto& own : net->parts())
      for (const auto place : {own.query_down, own.query_up, own.value_down, own.value_up})
        entries.push_back(entry(place));
    return entries;
  }
};

/// Rows of the centres of some classes within `flat` [P], a view.
at::Tensor centers_of(const run_settings& run, const at::Tensor& flat, class_range classes) {
  return as_in_files(flat, run.centers()).narrow(0, classes.low, classes.size());
}

// -- server half ------------------------------------------------------------------------------------------------------

struct kept_upload {
  tensors_ref tensors{};
  double rows = 0.0;
  void persist(archive& state) { state(tensors)(rows); }
};

class pilora_server final : public server_half {
public:
  explicit pilora_server(std::shared_ptr<const run_settings> run)
      : run_(std::move(run)), initial_(run_->setup.initial), weights_(initial_->at(flat_weights)) {}
  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  broadcast open_round(const round_place& place) override;
  void fold(const delivery& in) override {
    if (in.started_from.value >= task_began_) // else it was kept although its task is over
      uploads_.push_back({in.upload, run_->setup.weighting == upload_weighting::samples ? double(in.rows) : 1.0});
  }
  task<void> close_round(server_context& ctx, const round_place& place) override;
  [[nodiscard]] predictor predict() const override;
  void persist(archive& state) override { state(opened_)(task_began_)(earlier_)(uploads_).frozen(weights_); }

private:
  void average_low_rank(at::Tensor& flat) const;
  void average_centers(at::Tensor& flat, class_range classes) const;
  [[nodiscard]] tensors_ref low_rank_now() const;
  [[nodiscard]] std::vector<tensors_ref> evaluated() const;

  std::shared_ptr<const run_settings> run_;
  tensors_ref initial_;
  at::Tensor weights_;               // [P]: the low-rank parts of the present task, and all centres
  std::vector<tensors_ref> earlier_; // low-rank parts by task
  std::vector<kept_upload> uploads_; // of the open round, in the order in which they arrived
  std::int64_t opened_ = 0;          // tasks
  std::uint64_t task_began_ = 0;     // the task's first round
};

/// Parts of the task before are kept; A is drawn anew, and B is zeros.
task<task_plan> pilora_server::open_task(server_context& /*ctx*/, const round_place& place) {
  task_began_ = place.round.value;
  if (opened_++ > 0) {
    earlier_.push_back(low_rank_now());
    auto flat = weights_.clone();
    for (const auto& entry : run_->low_rank()) {
      const auto drawn = at::zeros(entry.shape, at::kFloat);
      if (entry.bound > 0.0) {
        rng_stream draw({.seed = run_->setup.seed,
                         .purpose = low_rank_draw,
                         .task = place.task,
                         .index = static_cast<std::uint64_t>(entry.offset)});
        auto* const values = drawn.mutable_data_ptr<float>();
        for (std::int64_t i = 0; i < drawn.numel(); ++i)
          values[i] = static_cast<float>(draw.uniform(-entry.bound, entry.bound));
      }
      put_as_in_files(flat, entry, drawn.to(flat.device()));
    }
    weights_ = flat;
  }
  co_return task_plan{};
}

tensors_ref pilora_server::low_rank_now() const {
  auto parts = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    parts->put(entry.name, as_in_files(weights_, entry).clone());
  return parts;
}

/// What learns; beside it, in later tasks, the centres and A of earlier ones.
broadcast pilora_server::open_round(const round_place& place) {
  auto sent = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    sent->put(entry.name, as_in_files(weights_, entry).clone());
  sent->put(task_centers, centers_of(*run_, weights_, place.current).clone());
  broadcast out{.place = {}, .weights = sent, .extra = nullptr, .first_contact = initial_};
  if (earlier_.empty())
    return out;
  auto past = std::make_shared<tensor_map>();
  past->put(earlier_centers, centers_of(*run_, weights_, {0, place.current.low}).clone());
  for (const auto& entry : run_->low_rank()) {
    if (entry.bound == 0.0) // B
      continue;
    std::vector<at::Tensor> downs;
    for (const auto& parts : earlier_)
      downs.push_back(parts->at(entry.name));
    past->put(earlier_name(entry), at::cat(downs));
  }
  out.extra = std::move(past);
  return out;
}

task<void> pilora_server::close_round(server_context& /*ctx*/, const round_place& place) {
  if (!uploads_.empty()) {
    auto flat = weights_.clone();
    average_low_rank(flat);
    average_centers(flat, place.current);
    weights_ = flat;
  }
  uploads_.clear();
  co_return;
}

/// The mean by rows, sums in float64 and delivery order.
void pilora_server::average_low_rank(at::Tensor& flat) const {
  for (const auto& entry : run_->low_rank()) {
    auto sum = at::zeros(entry.shape, flat.options().dtype(at::kDouble));
    double rows = 0.0;
    for (const auto& upload : uploads_) {
      sum.add_(upload.tensors->at(entry.name).to(flat.device(), at::kDouble), upload.rows);
      rows += upload.rows;
    }
    if (rows > 0.0)
      put_as_in_files(flat, entry, (sum / rows).to(at::kFloat));
  }
}

/// Class by class: the clients' centres, each weighted by how near it lies to the means that clients have of the class.
void pilora_server::average_centers(at::Tensor& flat, class_range classes) const {
  std::vector<std::vector<at::Tensor>> means(static_cast<std::size_t>(classes.size())); // [c][n] of [d]
  std::vector<at::Tensor> sent;
  for (const auto& [tensors, rows] : uploads_) {
    sent.push_back(tensors->at(task_centers).cpu());
    const auto* const theirs = tensors->find(class_means);
    if (!theirs)
      continue;
    const auto numbers = tensors->at(classes_of_means).cpu();
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      const auto c = static_cast<std::size_t>(numbers[i].item<std::int64_t>());
      means.at(c).push_back((*theirs)[i].cpu().to(at::kDouble));
    }
  }
  const auto stacked = at::stack(sent).to(at::kDouble); // [K, c, d]
  auto into = centers_of(*run_, flat, classes);
  for (std::int64_t c = 0; c < classes.size(); ++c) {
    const auto& own = means[static_cast<std::size_t>(c)];
    const auto centers = stacked.select(1, c);
    const auto known = own.empty() ? at::empty({0, stacked.size(2)}, at::kDouble) : at::stack(own);
    const auto weights = center_weights(centers, known, run_->with.temperature);
    into[c].copy_((weights.unsqueeze(1) * centers).sum(0).to(at::kFloat));
  }
}

// -- what is evaluated

/// Sums of two sets of parts, name by name: (A_1 + A_t, B_1 + B_t).
tensors_ref added(const tensor_map& first, const tensor_map& second) {
  auto sum = std::make_shared<tensor_map>();
  for (const auto& [name, value] : first)
    sum->put(name, value + second.at(name));
  return sum;
}

/// The parts whose products are added to the transformer's own weights.
std::vector<tensors_ref> pilora_server::evaluated() const {
  const auto now = low_rank_now();
  if (earlier_.empty())
    return {now};
  switch (run_->with.evaluate) {
  case evaluated_parts::released:
    return {earlier_.front()};
  case evaluated_parts::first_and_present:
    return {added(*earlier_.front(), *now)};
  case evaluated_parts::sum:
    break;
  }
  auto parts = earlier_;
  parts.push_back(now);
  return parts;
}

/// W_q + sum B_q A_q and W_v + sum B_v A_v in place of W_q and W_v; the parts themselves are zeros then.
predictor pilora_server::predict() const {
  auto flat = weights_.clone();
  const auto& net = *run_->net;
  const auto sets = evaluated();
  for (const auto& own : net.parts()) {
    auto joint = as_in_files(flat, run_->entry(net.attention_weight(own.block))); // [3 d, d], a view
    const auto d = joint.size(1);
    for (const auto& parts : sets) {
      const auto product = [&](std::size_t down, std::size_t up) {
        return at::matmul(parts->at(run_->entry(up).name), parts->at(run_->entry(down).name));
      };
      joint.narrow(0, 0, d).add_(product(own.query_down, own.query_up));
      joint.narrow(0, 2 * d, d).add_(product(own.value_down, own.value_up));
    }
    for (const auto up : {own.query_up, own.value_up})
      as_in_files(flat, run_->entry(up)).zero_();
  }
  return {.net = run_->net, .weights = weights_only(flat)};
}

// -- client half ------------------------------------------------------------------------------------------------------

class pilora final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  method_needs needs() const override;
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<pilora_server>(run_); }

private:
  [[nodiscard]] tensors_ref start_of(const broadcast& in) const;
  [[nodiscard]] tensors_ref upload_of(const train_output& trained, class_range classes) const;

  options with_;
  std::shared_ptr<const run_settings> run_;
  loss_ref objective_;
};

void pilora::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  auto run = std::make_shared<run_settings>();
  run->with = with_;
  run->setup = setup;
  run->net = std::dynamic_pointer_cast<const low_rank_vit>(setup.net);
  objective_ = pilora_objective(*run->net, with_.weights);
  run_ = std::move(run);
}

task<client_result> pilora::client_round(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = {0, setup().classes}});
  if (with_.late_schedule)
    job.options.learning_rate =
        options_for_round(setup().training, setup().trainable, job.options.classes,
                          std::max<std::int64_t>(in.place.round_of_task - 1, 0), in.place.rounds_of_task)
            .learning_rate;
  job.start = start_of(in);
  job.objective = objective_;
  job.side = in.extra;
  job.options.learnt = in.place.current;
  job.options.rates = {{low_rank_vit::layers, with_.low_rank_rate / setup().training.learning_rate}};
  job.options.feature_sums = true;
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  co_return client_result{.upload = upload_of(trained, in.place.current), .memory = nullptr, .rows = trained.rows_seen};
}

/// The transformer and centres of classes to come as the first contact has brought them, the others as they were sent.
tensors_ref pilora::start_of(const broadcast& in) const {
  auto flat = in.first_contact->at(flat_weights).clone();
  for (const auto& entry : run_->low_rank())
    put_as_in_files(flat, entry, in.weights->at(entry.name));
  centers_of(*run_, flat, in.place.current).copy_(in.weights->at(task_centers));
  if (in.extra)
    centers_of(*run_, flat, {0, in.place.current.low}).copy_(in.extra->at(earlier_centers));
  return weights_only(flat);
}

tensors_ref pilora::upload_of(const train_output& trained, class_range classes) const {
  const auto& flat = trained.weights->at(flat_weights);
  auto upload = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    upload->put(entry.name, as_in_files(flat, entry).clone());
  upload->put(task_centers, centers_of(*run_, flat, classes).clone());
  if (!trained.feature_sums.defined())
    return upload;
  const auto rows = trained.feature_rows.narrow(0, classes.low, classes.size());
  const auto held = rows.nonzero().flatten(); // [n]
  if (held.numel() == 0)
    return upload;
  const auto sums = trained.feature_sums.narrow(0, classes.low, classes.size()).index_select(0, held);
  upload->put(class_means, (sums / rows.index_select(0, held).unsqueeze(1)).to(at::kFloat));
  upload->put(classes_of_means, held);
  return upload;
}

// -- what the engine is told ------------------------------------------------------------------------------------------

method_needs pilora::needs() const {
  return {.prompts = with_.parts,
          .round_barrier = true, // centres are weighed against the means of all
          .defaults = "[model]\nname = \"vit\"\n[training]\noptimizer = \"adam\"\nlearning_rate = 2e-3\n"
                      "weight_decay = 1e-5\n"};
}

diagnostics pilora::check(const method_setup& setup) const {
  auto wrong = averaging_method::check(setup);
  if (!dynamic_cast<const low_rank_vit*>(setup.net.get()))
    wrong.push_back({"model.name", fmt::format("the net '{}' has no attention that could have low-rank parts; expected "
                                               "model.name = \"vit\"",
                                               setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    wrong.push_back({"model.trainable", "model.trainable: the transformer is frozen as it is, and low-rank parts are "
                                        "learnt beside the centres; expected \"all\""});
  if (setup.keep_share > 0.0)
    wrong.push_back({"strategy.keep_share", "strategy.keep_share > 0: pilora's server steps by rules of its own; "
                                            "expected 0"});
  append(wrong, repeated_classes(setup, "low-rank part is"));
  auto blocks = with_.parts.blocks;
  std::sort(blocks.begin(), blocks.end());
  if (const auto twice = std::adjacent_find(blocks.begin(), blocks.end()); twice != blocks.end())
    wrong.push_back({"strategy.blocks", fmt::format("strategy.blocks: block {} has two low-rank parts; expected each "
                                                    "block once",
                                                    *twice)});
  return wrong;
}

void pilora::keys(key_table& table) {
  table.integers("blocks", with_.parts.blocks, {.low = 0, .high = 199},
                 "Blocks of the transformer whose attention has low-rank parts, from 0 on.");
  table.integer("rank", with_.parts.rank, {.low = 1, .high = 4096}, "Rank of a low-rank part.");
  table.number(
      "low_rank_rate", with_.low_rank_rate, {.low = 0.0, .open_low = true},
      "Learning rate of low-rank parts; training.learning_rate is that of centres, whose schedule both follow.");
  table.number("prototype", with_.weights.prototype, {.low = 0.0}, "Weight of the distance to the own centre.");
  table.number("sparsity", with_.weights.sparsity, {.low = 0.0}, "Weight of the sum of |A|.");
  table.number("orthogonality", with_.weights.orthogonality, {.low = 0.0}, "Weight of the sums of |A^s A^T|.");
  table.number("temperature", with_.temperature, {.low = 0.0, .open_low = true},
               "Temperature of the weights of clients' centres.");
  table.choice(
      "evaluate", with_.evaluate,
      {{"sum", evaluated_parts::sum},
       {"first-plus-current", evaluated_parts::first_and_present},
       {"released", evaluated_parts::released}},
      "Low-rank parts of the evaluated net: of all tasks, as the text has it; of the first and the present one "
      "as one; or, as released, that of the first for ever.");
  table.flag("late_schedule", with_.late_schedule,
             "A round learns at the rate of the round before it, as released: the first two at the first rate.");
}

std::vector<preset> pilora::presets() const {
  const auto program = [](const char* centers, const char* low_rank, const char* ends) {
    return fmt::format("[strategy]\nlow_rank_rate = {}\n{}[rounds]\nper_task = 30\ncohort = 10\n"
                       "[training]\nepochs = 10\nbatch = 64\noptimizer = \"adam\"\nlearning_rate = {}\n"
                       "weight_decay = 1e-5\nschedule = \"cosine\"\n",
                       low_rank, ends, centers);
  };
  const char* const released = "evaluate = \"released\"\nlate_schedule = true\n";
  return {{"stsa", "as STSA compares with it: 2 epochs of batches of 128; its rates are not published",
           "[training]\nepochs = 2\nbatch = 128\noptimizer = \"adam\"\nlearning_rate = 2e-3\nweight_decay = 1e-5\n"},
          {"paper", "30 rounds of 10 epochs with 10 of 30 clients; parts are summed over tasks",
           program("2e-3", "1e-5", "")},
          {"official", "the released program for CIFAR-100: it evaluates with the low-rank part of task 1",
           program("2e-3", "1e-5", released) + "[evaluation]\nmask = \"all\"\n"},
          {"official-tiny", "the same for TinyImageNet",
           program("5e-3", "5e-6", released) + "[evaluation]\nmask = \"all\"\n"}};
}

const strategy_registration line{
    {.name = "pilora",
     .summary = "a low-rank part per task and centres of classes, re-weighted (PILoRA, Guo et al. 2024)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<pilora>(); }}};

} // namespace
} // namespace mneme::pilora_method
