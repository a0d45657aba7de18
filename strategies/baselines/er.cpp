// ER: experience replay of a client's own rows (Chaudhry et al. 2019, "On Tiny Episodic Memories in Continual
// Learning", Algorithm 1), at each client of FedAvg. A client remembers at most `buffer` of the rows that it has met.
// Every step takes a batch of the current rows and `replayed` remembered ones, and its loss is the mean over both
// together (`loss` = "sum" adds the mean over each instead). What is remembered is, by `selection`,
//     reservoir: a uniform sample of all rows so far (Vitter 1985, Algorithm R): the n-th row takes a place drawn from
//                0 .. n - 1 if that lies within the buffer (Chaudhry et al., Algorithm 2), or
//     ring:      the last buffer / C rows of each of the C classes of the run (their Algorithm 3).
// As in the paper rows of the current task are remembered, and replayed, too. Ours: the buffer changes between rounds
// and not between steps, since it is a memory, which the delivery of a round changes; and a row is met once, in the
// first delivered round of a task, whatever the rounds and epochs (the public program meets it again in every epoch).
// What is remembered are row numbers; they are replayed by one shuffle of the buffer after the other, augmented as
// others are.
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
constexpr const char *rows_name = "rows", *met_name = "met"; // in memory: [n] int64; [2] int64: rows met, the last task

enum class buffer_selection : std::uint8_t { reservoir, ring };
enum class joint_loss : std::uint8_t { together, sum };
struct options {
  std::int64_t buffer = 200, replayed = 32;
  buffer_selection selection = buffer_selection::reservoir;
  joint_loss joint = joint_loss::together;
};

/// Cross-entropy, a mean over all real rows of a step, own and replayed ones.
class joint_cross_entropy final : public cross_entropy_loss {
public:
  std::string identity() const override { return "cross-entropy of own and replayed rows"; }
  loss_output operator()(const loss_input& in) const override {
    const auto real = (in.row_weight > 0).to(in.row_weight.scalar_type()); // [K, B]
    const auto weight = real / real.sum(1, true).clamp_min(1.0);           // sums of ones are exact in any order
    return cross_entropy_loss::operator()({.logits = in.logits,
                                           .features = in.features,
                                           .labels = in.labels,
                                           .row_weight = weight,
                                           .sides = in.sides,
                                           .label_smoothing = in.label_smoothing});
  }
};

/// Algorithm R over a stream of which `met` rows have passed.
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

/// The last `each` rows of every class, in the order in which they came.
row_list last_of_classes(const dataset& source, row_list kept, const row_list& fresh, std::int64_t each) {
  kept.insert(kept.end(), fresh.begin(), fresh.end());
  std::map<std::int32_t, std::int64_t> more; // rows of a class beyond `each`
  for (const auto row : kept)
    ++more.try_emplace(source.label(row), -each).first->second;
  std::erase_if(kept, [&](std::int64_t row) { return more[source.label(row)]-- > 0; });
  return kept;
}

class er final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.integer("buffer", with_.buffer, {.low = 1}, "Rows that a client remembers, at most.");
    table.integer("replayed", with_.replayed, {.low = 1}, "Remembered rows that join every step, at most.");
    table.choice("selection", with_.selection,
                 {{"reservoir", buffer_selection::reservoir}, {"ring", buffer_selection::ring}},
                 "What is remembered: a uniform sample of all rows so far, or the last rows of each class.");
    table.choice("loss", with_.joint, {{"together", joint_loss::together}, {"sum", joint_loss::sum}},
                 "A step's loss: the mean over its own and replayed rows together, or one mean plus the other.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "tiny memories: 10 rows and 10 replayed ones in a step, one epoch",
             "[strategy]\nreplayed = 10\n[training]\nbatch = 10\nepochs = 1\nlearning_rate = 0.1\n"},
            {"mammoth", "defaults of that public program for a buffer of 200 rows",
             "[strategy]\nbuffer = 200\nreplayed = 32\n[training]\nbatch = 32\nlearning_rate = 0.1\n"}};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    travelling_ = travelling_weights(setup.net, setup.trainable);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in) const;
  [[nodiscard]] memory_ref remembered(const client_context& ctx, const broadcast& in) const;

  options with_;
  travelling_weights travelling_;
  loss_ref together_ = std::make_shared<joint_cross_entropy>();
};

diagnostics er::check(const method_setup& setup) const {
  auto wrong = averaging_method::check(setup);
  if (with_.selection == buffer_selection::ring && with_.buffer < setup.classes)
    wrong.push_back({"strategy.buffer", fmt::format("strategy.buffer = {}: selection = \"ring\" keeps as many rows of "
                                                    "each of the {} classes of the run; expected at least {}",
                                                    with_.buffer, setup.classes, setup.classes)});
  return wrong;
}

train_job er::training(const client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered(in.place)});
  job.start = whole_weights(in.weights, in);
  const auto* const rows = ctx.memory().find(rows_name);
  if (!rows)
    return job;
  job.replay.samples = view_of(ctx.samples(), listed(rows));
  job.options.replay_rows = with_.replayed;
  if (with_.joint == joint_loss::together)
    job.objective = together_;
  return job;
}

/// The rows of a task are met in its first round; after it the memory stays as it is.
memory_ref er::remembered(const client_context& ctx, const broadcast& in) const {
  const auto task = static_cast<std::int64_t>(in.place.task.value);
  row_list kept, met{0, -1};
  if (const auto& memory = ctx.memory(); !memory.empty()) {
    kept = listed(&memory.at(rows_name));
    met = listed(&memory.at(met_name));
  }
  const auto& fresh = *ctx.samples().rows;
  if (met[1] == task || fresh.empty())
    return nullptr;
  rng_stream draw(ctx.stream(place_draw));
  auto chosen = with_.selection == buffer_selection::reservoir
                    ? sampled(std::move(kept), fresh, met[0], with_.buffer, draw)
                    : last_of_classes(*ctx.samples().source, std::move(kept), fresh, with_.buffer / setup().classes);
  auto memory = std::make_shared<tensor_map>();
  memory->put(rows_name, at::tensor(chosen, at::kLong));
  memory->put(met_name, at::tensor({met[0] + std::ssize(fresh), task}, at::kLong));
  return memory;
}

task<client_result> er::client_round(client_context& ctx, const broadcast& in) const {
  auto learning = ctx.train(training(ctx, in));
  const auto trained = co_await learning;
  client_result result;
  result.upload = travelling_.pick(trained.weights->at(flat_weights));
  result.memory = remembered(ctx, in);
  result.rows = trained.rows_seen;
  co_return result;
}

const strategy_registration line{{.name = "er",
                                  .summary = "FedAvg whose clients replay rows of their own (ER, Chaudhry et al. 2019)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<er>(); }}};

} // namespace
} // namespace mneme::er_method
