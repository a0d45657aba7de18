#include "strategies/fed_cil/feature_gan.hpp"
#include "runtime/base/ceil_div.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <numeric>
namespace mneme {
namespace {

using labels_list = std::vector<std::int64_t>;
constexpr std::int64_t gan_steps_of_slice = 50;

/// Kinds of random draws in a step. Each kind has its own stream.
enum class gan_draw : std::uint64_t {
  rows,
  fakes,
  old_labels,
  old,
  old_fakes,
  server,
  fake_labels,
  old_fake_labels,
  fooling,
  fooling_labels,
  any_labels,
  server_any,
  own_any,
  pool,
  old_pool,
  order
};

labels_list classes_in(const at::Tensor& mask) {
  const auto host = mask.cpu().contiguous();
  labels_list classes;
  for (std::int64_t c = 0; c < host.numel(); ++c)
    if (host.const_data_ptr<float>()[c] > 0.0F)
      classes.push_back(c);
  return classes;
}

class gan_game final : public program {
public:
  gan_game(std::shared_ptr<const feature_gan> gan, const gan_training& training)
      : gan_(std::move(gan)), options_(training) {}

  [[nodiscard]] std::string name() const override { return "ac-gan"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {} {}-{} {} {} {} {} {}", gan_->generator()->identity(),
                       gan_->critic()->identity(), options_.steps, options_.batch, options_.rates.rate,
                       options_.rates.beta1, options_.rates.beta2, options_.rates.decay, options_.seen_classes.low,
                       options_.seen_classes.high, options_.any_fakes, options_.keeps_moments, options_.consistency,
                       gan_->shape().overwrites, options_.shuffles);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    std::vector<declared_tensor> promised;
    for (const auto& [name, net] :
         {std::pair(gan_tensors::generator, gan_->generator()), std::pair(gan_tensors::critic, gan_->critic())}) {
      promised.push_back({.name = name, .shape = {net->size()}});
      if (!options_.keeps_moments)
        continue;
      const auto moments = moment_names(name);
      promised.push_back({.name = moments[0], .shape = {net->size()}});
      promised.push_back({.name = moments[1], .shape = {net->size()}});
      promised.push_back({.name = moments[2], .shape = {}, .type = at::kLong});
    }
    return promised;
  }
  /// Memory for weights, moments and gradients of both nets, and for the activations of a critic step.
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    const auto weights = 5 * (gan_->generator()->size() + gan_->critic()->size());
    return weights * static_cast<std::int64_t>(sizeof(float)) + gan_->generator()->working_set(4 * options_.batch) +
           gan_->critic()->working_set(4 * options_.batch);
  }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override;

private:
  using calls_span = std::span<const program_call>;
  using labels_of_call = std::function<labels_list(std::size_t)>;

  [[nodiscard]] gan_draws drawn(calls_span calls, std::int64_t step) const;
  void draw_fakes(calls_span calls, std::int64_t step, gan_draws& draws) const;
  void draw_server(calls_span calls, std::int64_t step, gan_draws& draws) const;
  [[nodiscard]] rng_key key_of(const program_call& call, std::int64_t step, gan_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(step) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }
  [[nodiscard]] labels_list draw_labels(const program_call& call, std::int64_t step, gan_draw kind,
                                        const labels_list& among) const;
  [[nodiscard]] labeled_rows real_rows(calls_span calls, std::int64_t step) const;
  [[nodiscard]] labeled_rows old_rows(calls_span calls, std::int64_t step) const;
  [[nodiscard]] labels_list own_places(const program_call& call, std::int64_t step) const;
  [[nodiscard]] labeled_rows rows_in_turn(const program_call& call, std::int64_t step) const;
  [[nodiscard]] labeled_rows pooled_rows(const program_call& call, std::int64_t step, gan_draw kind,
                                         const at::Tensor& generators, const at::Tensor& masks) const;
  [[nodiscard]] labeled_codes coded(calls_span calls, std::int64_t step, gan_draw kind,
                                    const labels_of_call& labels) const;
  [[nodiscard]] labeled_rows generated(calls_span calls, std::int64_t step, gan_draw kind, const char* generator,
                                       const labels_of_call& labels) const;
  [[nodiscard]] at::Tensor stacked(calls_span calls, const char* name) const;

  std::shared_ptr<const feature_gan> gan_;
  gan_training options_;
};

at::Tensor gan_game::stacked(calls_span calls, const char* name) const {
  std::vector<at::Tensor> rows;
  for (const auto& call : calls)
    rows.push_back(call.in.at(name));
  return at::stack(rows);
}

labels_list gan_game::draw_labels(const program_call& call, std::int64_t step, gan_draw kind,
                                  const labels_list& among) const {
  labels_list labels;
  rng_stream draw(key_of(call, step, kind));
  for (std::int64_t i = 0; i < options_.batch; ++i)
    labels.push_back(among[draw.below(among.size())]);
  return labels;
}

/// Stacks the rows of all calls.
labeled_rows stacked_rows(const std::vector<labeled_rows>& of_calls) {
  std::vector<at::Tensor> features, labels;
  for (const auto& rows : of_calls) {
    features.push_back(rows.features);
    labels.push_back(rows.labels);
  }
  return {at::stack(features), at::stack(labels)};
}

/// Row positions of a step: the next batch of the shuffle, or random rows if the call has fewer than a batch.
labels_list gan_game::own_places(const program_call& call, std::int64_t step) const {
  const auto rows = call.in.at(gan_tensors::features).size(0);
  labels_list places;
  if (!options_.shuffles || rows < options_.batch) {
    rng_stream draw(key_of(call, step, gan_draw::rows));
    for (std::int64_t i = 0; i < options_.batch; ++i)
      places.push_back(static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(rows))));
    return places;
  }
  const auto number = call.in.at(gan_tensors::batches).item<std::int64_t>() + step;
  return batch_of_shuffle(rows, options_.batch, number, key_of(call, 0, gan_draw::order));
}

/// Returns a batch of real rows for each call.
labeled_rows gan_game::real_rows(calls_span calls, std::int64_t step) const {
  std::vector<labeled_rows> of_calls;
  for (const auto& call : calls) {
    if (const auto* const own = call.in.find(gan_tensors::own_classes)) {
      of_calls.push_back(pooled_rows(call, step, gan_draw::pool, call.in.at(gan_tensors::generators), *own));
      continue;
    }
    if (call.in.find(gan_tensors::generators)) {
      of_calls.push_back(rows_in_turn(call, step));
      continue;
    }
    const auto& rows = call.in.at(gan_tensors::features);
    const auto listed = at::tensor(own_places(call, step), at::kLong).to(rows.device());
    of_calls.push_back({rows.index_select(0, listed), call.in.at(gan_tensors::labels).index_select(0, listed)});
  }
  return stacked_rows(of_calls);
}

/// Rows that the clients' generators make for the classes in `fresh`. Generators take turns, and so do classes.
labeled_rows gan_game::rows_in_turn(const program_call& call, std::int64_t step) const {
  const auto& generators = call.in.at(gan_tensors::generators);
  const auto fresh = call.in.at(gan_tensors::fresh).cpu();
  const auto models = generators.size(0), each = ceil_div(options_.batch, models);
  labels_list labels;
  std::vector<at::Tensor> codes;
  for (std::int64_t m = 0; m < models; ++m) {
    labels_list own;
    for (std::int64_t i = 0; i < each; ++i)
      own.push_back(fresh[(step + m * each + i) % fresh.numel()].item<std::int64_t>());
    auto key = key_of(call, step, gan_draw::rows);
    key.visit += static_cast<std::uint32_t>(m) << 24U;
    codes.push_back(gan_->codes(own, key));
    labels.insert(labels.end(), own.begin(), own.end());
  }
  const auto generated = gan_->rows(generators, at::stack(codes).to(generators.device())); // [M, each, D]
  return {generated.flatten(0, 1).narrow(0, 0, options_.batch),
          at::tensor(labels, at::kLong).to(generators.device()).narrow(0, 0, options_.batch)};
}

/// Every generator makes a batch of rows of its own classes; these batches form a pool. Labels are drawn uniformly from
/// the classes in the pool, and a row of the pool is drawn for each label.
labeled_rows gan_game::pooled_rows(const program_call& call, std::int64_t step, gan_draw kind,
                                   const at::Tensor& generators, const at::Tensor& masks) const {
  rng_stream draw(key_of(call, step, kind));
  labels_list labels; // [M B] labels of the pool's rows
  std::vector<at::Tensor> codes;
  for (std::int64_t m = 0; m < generators.size(0); ++m) {
    const auto among = classes_in(masks[m]);
    labels_list own;
    for (std::int64_t i = 0; i < options_.batch; ++i)
      own.push_back(among[draw.below(among.size())]);
    labels.insert(labels.end(), own.begin(), own.end());
    auto key = key_of(call, step, kind);
    key.visit += static_cast<std::uint32_t>(m + 1) << 24U;
    codes.push_back(gan_->codes(own, key));
  }
  const auto pool = gan_->rows(generators, at::stack(codes).to(generators.device())).flatten(0, 1); // [M B, D]
  const auto chosen = balanced(labels, options_.batch, [&draw](std::uint64_t below) { return draw.below(below); });
  return {pool.index_select(0, at::tensor(chosen.places, at::kLong).to(pool.device())),
          at::tensor(chosen.labels, at::kLong).to(pool.device())};
}

labeled_rows gan_game::old_rows(calls_span calls, std::int64_t step) const {
  const auto& in = calls.front().in;
  if (in.find(gan_tensors::old_generator))
    return generated(calls, step, gan_draw::old, gan_tensors::old_generator, [&](std::size_t k) {
      return draw_labels(calls[k], step, gan_draw::old_labels, classes_in(calls[k].in.at(gan_tensors::old_classes)));
    });
  if (!in.find(gan_tensors::old_generators))
    return {};
  std::vector<labeled_rows> of_calls;
  for (const auto& call : calls)
    of_calls.push_back(pooled_rows(call, step, gan_draw::old_pool, call.in.at(gan_tensors::old_generators),
                                   call.in.at(gan_tensors::past_classes)));
  return stacked_rows(of_calls);
}

labeled_codes gan_game::coded(calls_span calls, std::int64_t step, gan_draw kind, const labels_of_call& labels) const {
  std::vector<at::Tensor> codes, listed;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const auto of_call = labels(k);
    codes.push_back(gan_->codes(of_call, key_of(calls[k], step, kind)));
    listed.push_back(at::tensor(of_call, at::kLong));
  }
  const auto device = calls.front().device();
  return {at::stack(codes).to(device), at::stack(listed).to(device)};
}

/// Returns rows that the generator named `generator` of each call makes.
labeled_rows gan_game::generated(calls_span calls, std::int64_t step, gan_draw kind, const char* generator,
                                 const labels_of_call& labels) const {
  const auto codes = coded(calls, step, kind, labels);
  return {gan_->rows(stacked(calls, generator), codes.codes), codes.labels};
}

std::function<labels_list(std::size_t)> as_in(const at::Tensor& labels) {
  return [host = labels.cpu().contiguous()](std::size_t k) {
    const auto row = host[static_cast<std::int64_t>(k)];
    const auto* const first = row.const_data_ptr<std::int64_t>();
    return labels_list(first, first + row.numel());
  };
}

/// Draws the fakes for real and replayed rows. With `any_fakes` (official), their labels are drawn independently, and
/// the generator's step has a separate batch. Otherwise the fakes have the labels of the rows, and the generator's step
/// uses the codes of these fakes.
void gan_game::draw_fakes(calls_span calls, std::int64_t step, gan_draws& draws) const {
  const bool replays = draws.old.features.defined();
  if (!options_.any_fakes) {
    draws.fakes = draws.generator_inputs = coded(calls, step, gan_draw::fakes, as_in(draws.real.labels));
    if (replays)
      draws.old_fakes = draws.old_generator_inputs = coded(calls, step, gan_draw::old_fakes, as_in(draws.old.labels));
    return;
  }
  const auto any = [&](gan_draw kind, gan_draw of_labels) {
    return coded(calls, step, kind, [&](std::size_t k) {
      return draw_labels(calls[k], step, of_labels, classes_in(calls[k].in.at(gan_tensors::classes_so_far)));
    });
  };
  draws.fakes = any(gan_draw::fakes, gan_draw::fake_labels);
  draws.generator_inputs = any(gan_draw::fooling, gan_draw::fooling_labels);
  if (replays)
    draws.old_fakes = any(gan_draw::old_fakes, gan_draw::old_fake_labels);
}

/// Draws two batches from the server's generator: one with the labels of the real rows, and one with labels of any
/// available class.
void gan_game::draw_server(calls_span calls, std::int64_t step, gan_draws& draws) const {
  draws.server = generated(calls, step, gan_draw::server, gan_tensors::server_generator, as_in(draws.real.labels));
  draws.server_any = generated(calls, step, gan_draw::server_any, gan_tensors::server_generator, [&](std::size_t k) {
    return draw_labels(calls[k], step, gan_draw::any_labels, classes_in(calls[k].in.at(gan_tensors::available)));
  });
  draws.own_any = coded(calls, step, gan_draw::own_any, as_in(draws.server_any.labels));
}

gan_draws gan_game::drawn(calls_span calls, std::int64_t step) const {
  gan_draws draws{.real = real_rows(calls, step), .old = old_rows(calls, step)};
  draw_fakes(calls, step, draws);
  if (options_.consistency > 0.0 && calls.front().in.find(gan_tensors::server_generator))
    draw_server(calls, step, draws);
  return draws;
}

std::vector<slice_result> gan_game::run(calls_span calls) const {
  const auto slice = calls.front().slice;
  const auto player = [&](const char* name) {
    if (slice > 0)
      return adam::loaded(name, calls);
    return options_.keeps_moments ? adam::loaded(name, calls, &program_call::in) : adam(stacked(calls, name));
  };
  gan_optimizers both{.generator = player(gan_tensors::generator), .critic = player(gan_tensors::critic)};
  const auto first = slice * gan_steps_of_slice, last = std::min(options_.steps, first + gan_steps_of_slice);
  for (auto step = first; step < last; ++step)
    gan_step(*gan_, options_, both, drawn(calls, step));

  std::vector<slice_result> steps;
  for (std::int64_t k = 0; k < std::ssize(calls); ++k) {
    slice_result step{.finished = last == options_.steps,
                      .progress = static_cast<double>(last) / static_cast<double>(options_.steps)};
    if (step.finished && !options_.keeps_moments) {
      step.tensors = {{gan_tensors::generator, both.generator.weights()[k]},
                      {gan_tensors::critic, both.critic.weights()[k]}};
    } else {
      both.generator.save(gan_tensors::generator, k, step.tensors);
      both.critic.save(gan_tensors::critic, k, step.tensors);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

} // namespace

choose_balanced_rows balanced(const std::vector<std::int64_t>& pool, std::int64_t rows,
                              const std::function<std::uint64_t(std::uint64_t)>& draw_below) {
  std::map<std::int64_t, labels_list> places;
  for (std::size_t i = 0; i < pool.size(); ++i)
    places[pool[i]].push_back(static_cast<std::int64_t>(i));
  labels_list present;
  for (const auto& [label, listed] : places)
    present.push_back(label);
  choose_balanced_rows chosen;
  for (std::int64_t i = 0; i < rows; ++i) {
    chosen.labels.push_back(present[draw_below(present.size())]);
    const auto& listed = places.at(chosen.labels.back());
    chosen.places.push_back(listed[draw_below(listed.size())]);
  }
  return chosen;
}

std::vector<std::int64_t> batch_of_shuffle(std::int64_t rows, std::int64_t batch, std::int64_t number, rng_key stream) {
  const auto batches = rows / batch;
  stream.visit = static_cast<std::uint32_t>(number / batches); // continues the pass of the client's previous round
  labels_list order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  rng_stream(stream).shuffle(std::span(order));
  const auto first = order.begin() + number % batches * batch;
  return {first, first + batch};
}

program_ref gan_program(std::shared_ptr<const feature_gan> gan, const gan_training& training) {
  return std::make_shared<gan_game>(std::move(gan), training);
}

} // namespace mneme
