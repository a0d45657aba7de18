// ER: A. Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019, Algorithm 1. Each client of FedAvg
// keeps a buffer of at most `buffer` rows. Every step trains on a batch of current rows plus `replay_rows` buffered
// rows, which include rows of the current task. The key `selection` chooses the rule of the buffer:
// - reservoir: a uniform sample of all rows so far (Algorithm 2; Vitter 1985, Algorithm R). The n-th row draws an index
//   from 0 .. n - 1 and replaces the buffered row with that index, if there is one.
// - ring: the last buffer / C rows of each of the C classes of the run (Algorithm 3).
// The loss is the mean over current and buffered rows together; loss = "sum" adds the two means instead.
//
// The public code (mammoth) presents a row to the buffer again in every epoch, and updates the buffer in every step.
//
// Ours: the buffer changes once per task, in the client's first delivered round, and each row is presented once. The
// memory holds row numbers, so replayed rows are augmented like other rows. Training iterates over shuffles of the
// buffer.
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/exemplar_memory.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
namespace mneme::er_method {
namespace {

// Axes: K models, B rows of a step.

enum draws : std::uint32_t { place_draw = first_method_purpose };
// Tensors of the memory, int64: "rows" [n] are row numbers; "met" [2] are the number of rows presented and the last
// task.
constexpr const char *rows_name = "rows", *met_name = "met";

enum class buffer_selection : std::uint8_t { reservoir, ring };
enum class joint_loss : std::uint8_t { together, sum };
struct options {
  std::int64_t buffer = 200, replayed = 32;
  buffer_selection selection = buffer_selection::reservoir;
  joint_loss joint = joint_loss::together;
};

/// Cross-entropy averaged over all real rows of a step, current and replayed.
class joint_cross_entropy final : public cross_entropy_loss {
public:
  std::string identity() const override { return "cross-entropy of own and replayed rows"; }
  loss_output operator()(const loss_input& in) const override {
    const auto real = (in.row_weight > 0).to(in.row_weight.scalar_type()); // [K, B]
    const auto weight = real / real.sum(1, true).clamp_min(1.0); // exact in any order, because sums of ones are exact
    return cross_entropy_loss::operator()({.logits = in.logits,
                                           .features = in.features,
                                           .labels = in.labels,
                                           .row_weight = weight,
                                           .auxiliaries = in.auxiliaries,
                                           .label_smoothing = in.label_smoothing});
  }
};

/// Algorithm R: presents the rows `fresh` to the buffer `kept`, to which `met` rows were presented before. Returns the
/// new buffer.
row_list sampled(row_list kept, const row_list& fresh, std::int64_t met, std::int64_t buffer, rng_stream& draw) {
  for (const auto row : fresh) {
    ++met;
    if (std::ssize(kept) < buffer) {
      kept.push_back(row);
      continue;
    }
    const auto place = draw.below(static_cast<std::uint64_t>(met));
    if (place < kept.size())
      kept[place] = row;
  }
  return kept;
}

/// Returns the last `each` rows of every class, in order of arrival.
row_list last_of_classes(const dataset& source, row_list kept, const row_list& fresh, std::int64_t each) {
  kept.insert(kept.end(), fresh.begin(), fresh.end());
  std::map<std::int32_t, std::int64_t> more; // number of rows to drop, by class
  for (const auto row : kept)
    ++more.try_emplace(source.label(row), -each).first->second;
  std::erase_if(kept, [&](std::int64_t row) { return more[source.label(row)]-- > 0; });
  return kept;
}

class er final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.integer("buffer", options_.buffer, {.low = 1}, "Maximum number of rows in a client's memory.");
    table.integer("replay_rows", options_.replayed, {.low = 1}, "Maximum number of replayed rows per step.");
    table.choice("selection", options_.selection,
                 {{"reservoir", buffer_selection::reservoir}, {"ring", buffer_selection::ring}},
                 "Selection of the memory: a uniform sample of all rows so far, or the last rows of each class.");
    table.choice("loss", options_.joint, {{"together", joint_loss::together}, {"sum", joint_loss::sum}},
                 "Loss of a step: the mean over own and replayed rows together, or the sum of their two means.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "10 current and 10 replayed rows per step, one epoch, learning rate 0.1",
             "[strategy]\nreplay_rows = 10\n[training]\nbatch = 10\nepochs = 1\nlearning_rate = 0.1\n"},
            {"mammoth", "defaults of mammoth for a buffer of 200 rows",
             "[strategy]\nbuffer = 200\nreplay_rows = 32\n[training]\nbatch = 32\nlearning_rate = 0.1\n"}};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    transmitted_ = transmitted_weights(setup.net, setup.trainable);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] memory_ref remembered(const client_context& ctx, const broadcast& in) const;

  options options_;
  transmitted_weights transmitted_;
  loss_ref together_ = std::make_shared<joint_cross_entropy>();
};

diagnostics er::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (options_.selection == buffer_selection::ring && options_.buffer < setup.classes)
    errors.push_back({"strategy.buffer", fmt::format("strategy.buffer = {}: selection = \"ring\" keeps as many rows of "
                                                     "each of the {} classes of the run; expected at least {}",
                                                     options_.buffer, setup.classes, setup.classes)});
  return errors;
}

train_job er::training(const client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = full_weights(in.weights, in);
  const auto* const rows = ctx.memory().find(rows_name);
  if (!rows)
    return job;
  job.replay.samples = view_of(ctx.samples(), to_row_list(rows));
  job.options.replay_rows = options_.replayed;
  if (options_.joint == joint_loss::together)
    job.objective = together_;
  return job;
}

/// Presents the rows of a task in the client's first round of the task. Returns null in later rounds: the memory does
/// not change.
memory_ref er::remembered(const client_context& ctx, const broadcast& in) const {
  const auto task = static_cast<std::int64_t>(in.info.task.value);
  row_list kept, met{0, -1};
  if (const auto& memory = ctx.memory(); !memory.empty()) {
    kept = to_row_list(&memory.at(rows_name));
    met = to_row_list(&memory.at(met_name));
  }
  const auto& fresh = *ctx.samples().rows;
  if (met[1] == task || fresh.empty())
    return nullptr;
  rng_stream draw(ctx.stream(place_draw));
  auto chosen = options_.selection == buffer_selection::reservoir
                    ? sampled(std::move(kept), fresh, met[0], options_.buffer, draw)
                    : last_of_classes(*ctx.samples().source, std::move(kept), fresh, options_.buffer / setup().classes);
  auto memory = std::make_shared<tensor_map>();
  memory->put(rows_name, at::tensor(chosen, at::kLong));
  memory->put(met_name, at::tensor({met[0] + std::ssize(fresh), task}, at::kLong));
  return memory;
}

task<client_result> er::client_round(client_context& ctx, const broadcast& in) const {
  auto learning = ctx.train(training(ctx, in));
  const auto trained = co_await learning;
  client_result result;
  result.upload = transmitted_.pick(trained.weights->at(flat_weights));
  result.memory = remembered(ctx, in);
  result.rows = trained.rows_seen;
  co_return result;
}

const strategy_registration line{
    {.name = "er",
     .summary = "FedAvg in which every client replays its own old rows (ER, Chaudhry et al. 2019)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<er>(); }}};

} // namespace
} // namespace mneme::er_method
