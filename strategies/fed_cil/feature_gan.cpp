#include "strategies/fed_cil/feature_gan.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/network.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <functional>
namespace mneme {

feature_gan::feature_gan(const gan_shape& shape) : shape_(shape) {
  const auto in = shape.latent + shape.classes;
  auto generator =
      std::make_shared<network>(fmt::format("feature generator {}-{}-{}", in, shape.generator_width, shape.features),
                                std::array<std::int64_t, 3>{1, 1, in});
  generator->add_linear("generator.fc1", shape.generator_width, activation::relu);
  generator->add_linear("generator.fc2", shape.features, activation::none);
  generator->end_headless();
  generator_ = std::move(generator);

  auto critic = std::make_shared<network>(
      fmt::format("feature critic {}-{}-{}+1", shape.features, shape.critic_width, shape.classes),
      std::array<std::int64_t, 3>{1, 1, shape.features});
  critic->add_linear("critic.fc1", shape.critic_width, activation::leaky);
  critic->add_head("critic.fc2", shape.classes + 1);
  critic_ = std::move(critic);
}

at::Tensor feature_gan::codes(const std::vector<std::int64_t>& labels, const rng_key& key) const {
  const auto width = shape_.latent + shape_.classes;
  auto codes = at::zeros({std::ssize(labels), width}, at::kFloat);
  auto* row = codes.mutable_data_ptr<float>();
  rng_stream draw(key);
  for (const auto label : labels) {
    for (std::int64_t z = 0; z < shape_.latent; ++z)
      row[z] = static_cast<float>(draw.normal());
    row[shape_.latent + label] = 1.0F;
    row += width;
  }
  return codes;
}

namespace {

using labels_list = std::vector<std::int64_t>;
constexpr std::int64_t gan_steps_of_slice = 50;

/// What is drawn in a step, one kind apart from the other.
enum class gan_draw : std::uint64_t { rows, made, old_labels, old, old_made, server };

/// Rows that play the same part in every call: [K, B, D] and [K, B].
struct labelled {
  at::Tensor features{}, labels{};
};

at::Tensor mean_of_rows(const at::Tensor& values) { return values.mean(-1).sum(); } // [K, B] to a sum over K

class gan_game final : public program {
public:
  gan_game(std::shared_ptr<const feature_gan> gan, const gan_training& with) : gan_(std::move(gan)), with_(with) {}

  [[nodiscard]] std::string name() const override { return "ac-gan"; }
  [[nodiscard]] std::string identity() const override {
    return fmt::format("{}, {} {} {} {} {} {} {}-{} {} {}", gan_->generator()->identity(), gan_->critic()->identity(),
                       with_.steps, with_.batch, with_.rates.rate, with_.rates.beta1, with_.rates.beta2,
                       with_.opened.low, with_.opened.high, with_.old_classes, with_.consistency);
  }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "generator", .shape = {gan_->generator()->size()}},
            {.name = "critic", .shape = {gan_->critic()->size()}}};
  }
  /// Weights, moments and gradients of both nets.
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override {
    return 5 * (gan_->generator()->size() + gan_->critic()->size()) * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] std::vector<program_step> run(std::span<const program_call> calls) const override;

private:
  struct players {
    adam generator{}, critic{};
  };
  void play(std::span<const program_call> calls, players& both, std::int64_t step) const;
  [[nodiscard]] rng_key key_of(const program_call& call, std::int64_t step, gan_draw kind) const {
    auto key = call.stream;
    key.index = static_cast<std::uint64_t>(step) << 8U | static_cast<std::uint64_t>(kind);
    return key;
  }
  [[nodiscard]] labels_list drawn_labels(const program_call& call, std::int64_t step, gan_draw kind,
                                         class_range among) const;
  [[nodiscard]] labelled real_rows(std::span<const program_call> calls, std::int64_t step) const;
  [[nodiscard]] labelled rows_of_generators(const program_call& call, std::int64_t step) const;
  [[nodiscard]] labelled made_rows(std::span<const program_call> calls, std::int64_t step, gan_draw kind,
                                   const at::Tensor& generator,
                                   const std::function<labels_list(std::size_t)>& labels) const;
  [[nodiscard]] at::Tensor stacked(std::span<const program_call> calls, const char* name) const;
  [[nodiscard]] at::Tensor scores(const at::Tensor& critic, const at::Tensor& features) const;
  [[nodiscard]] at::Tensor likelihood(const at::Tensor& scores, const at::Tensor& labels, bool real) const;
  [[nodiscard]] at::Tensor log_p(const at::Tensor& scores) const {
    return stacked_log_softmax(scores.narrow(2, with_.opened.low, with_.opened.size()));
  }
  [[nodiscard]] at::Tensor consistency(const at::Tensor& critic, const labelled& real, const labelled& own,
                                       const labelled& server) const;

  std::shared_ptr<const feature_gan> gan_;
  gan_training with_;
};

at::Tensor gan_game::stacked(std::span<const program_call> calls, const char* name) const {
  std::vector<at::Tensor> rows;
  for (const auto& call : calls)
    rows.push_back(call.in.at(name));
  return at::stack(rows);
}

labels_list gan_game::drawn_labels(const program_call& call, std::int64_t step, gan_draw kind,
                                   class_range among) const {
  labels_list labels;
  rng_stream draw(key_of(call, step, kind));
  for (std::int64_t i = 0; i < with_.batch; ++i)
    labels.push_back(among.low + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(among.size()))));
  return labels;
}

/// A batch of each call's rows, drawn with replacement: some have fewer than a batch.
labelled gan_game::real_rows(std::span<const program_call> calls, std::int64_t step) const {
  std::vector<at::Tensor> features, labels;
  for (const auto& call : calls) {
    if (call.in.find("generators")) {
      const auto generated = rows_of_generators(call, step);
      features.push_back(generated.features);
      labels.push_back(generated.labels);
      continue;
    }
    const auto& rows = call.in.at("features");
    const auto places = at::tensor(drawn_labels(call, step, gan_draw::rows, {0, rows.size(0)}), at::kLong);
    features.push_back(rows.index_select(0, places.to(rows.device())));
    labels.push_back(call.in.at("labels").index_select(0, places.to(rows.device())));
  }
  return {at::stack(features), at::stack(labels)};
}

/// Rows that the clients' generators make in turn, of the fresh classes in turn.
labelled gan_game::rows_of_generators(const program_call& call, std::int64_t step) const {
  const auto& generators = call.in.at("generators");
  const auto fresh = call.in.at("fresh").cpu();
  const auto models = generators.size(0), each = (with_.batch + models - 1) / models;
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
  const auto in = at::stack(codes).to(generators.device()).unflatten(2, {1, 1, -1});
  const auto generated = gan_->generator()->differentiable(generators, in, {}, {}).features; // [M, each, D]
  return {generated.flatten(0, 1).narrow(0, 0, with_.batch),
          at::tensor(labels, at::kLong).to(generators.device()).narrow(0, 0, with_.batch)};
}

labelled gan_game::made_rows(std::span<const program_call> calls, std::int64_t step, gan_draw kind,
                             const at::Tensor& generator, const std::function<labels_list(std::size_t)>& labels) const {
  std::vector<at::Tensor> codes, listed;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const auto labels_of_call = labels(k);
    codes.push_back(gan_->codes(labels_of_call, key_of(calls[k], step, kind)));
    listed.push_back(at::tensor(labels_of_call, at::kLong));
  }
  const auto in = at::stack(codes).to(generator.device()).unflatten(2, {1, 1, -1}); // [K, B, 1, 1, Z + C]
  return {gan_->generator()->differentiable(generator, in, {}, {}).features, at::stack(listed).to(generator.device())};
}

/// [K, B, C + 1]
at::Tensor gan_game::scores(const at::Tensor& critic, const at::Tensor& features) const {
  const auto classes = gan_->critic()->classes();
  return gan_->critic()->differentiable(critic, features.unflatten(2, {1, 1, -1}), {0, classes}, {}).logits;
}

/// BCE of being real or not, plus cross-entropy over the classes seen: means over rows, summed over calls.
at::Tensor gan_game::likelihood(const at::Tensor& scores, const at::Tensor& labels, bool real) const {
  const auto says_real = scores.select(2, scores.size(2) - 1); // [K, B]
  const auto sure = by_element((real ? says_real : -says_real).contiguous(), at::log_sigmoid);
  const auto of_label = log_p(scores).gather(2, (labels - with_.opened.low).unsqueeze(2)).squeeze(2);
  return mean_of_rows(-sure) + mean_of_rows(-of_label);
}

at::Tensor gan_game::consistency(const at::Tensor& critic, const labelled& real, const labelled& own,
                                 const labelled& server) const {
  const auto log_server = log_p(scores(critic, server.features));
  const auto from = [&](const labelled& rows) { // KL(p(rows) || p(server's rows))
    const auto log_rows = log_p(scores(critic, rows.features));
    return mean_of_rows((by_element(log_rows.contiguous(), at::exp) * (log_rows - log_server)).sum(2));
  };
  const auto of_label = log_server.gather(2, (server.labels - with_.opened.low).unsqueeze(2)).squeeze(2);
  return (from(real) + from(own) + mean_of_rows(-of_label)) * with_.consistency;
}

void gan_game::play(std::span<const program_call> calls, players& both, std::int64_t step) const {
  const auto real = real_rows(calls, step);
  const auto labels_of = [&](const at::Tensor& labels) {
    return [host = labels.cpu().contiguous()](std::size_t k) {
      const auto row = host[static_cast<std::int64_t>(k)];
      const auto* const first = row.const_data_ptr<std::int64_t>();
      return labels_list(first, first + row.numel());
    };
  };
  const bool replays = with_.old_classes > 0 && calls.front().in.find("old_generator");
  labelled old;
  if (replays)
    old = made_rows(calls, step, gan_draw::old, stacked(calls, "old_generator"), [&](std::size_t k) {
      return drawn_labels(calls[k], step, gan_draw::old_labels, {0, with_.old_classes});
    });
  const double share = replays ? 0.5 : 1.0;

  // The critic's step, with the generator as it is.
  const auto fixed = both.generator.weights();
  const auto generated = made_rows(calls, step, gan_draw::made, fixed, labels_of(real.labels));
  const auto critic = leaf_of(both.critic.weights());
  auto loss = (likelihood(scores(critic, real.features), real.labels, true) +
               likelihood(scores(critic, generated.features), generated.labels, false)) *
              share;
  if (replays) {
    const auto own_old = made_rows(calls, step, gan_draw::old_made, fixed, labels_of(old.labels));
    loss = loss + (likelihood(scores(critic, old.features), old.labels, true) +
                   likelihood(scores(critic, own_old.features), own_old.labels, false)) *
                      share;
  }
  if (with_.consistency > 0.0 && calls.front().in.find("server_generator")) {
    const auto server =
        made_rows(calls, step, gan_draw::server, stacked(calls, "server_generator"), labels_of(real.labels));
    loss = loss + consistency(critic, real, generated, server);
  }
  both.critic.step(gradients_of(loss, {critic}).front(), with_.rates);

  // The generator's, against the critic as it has become.
  const auto generator = leaf_of(both.generator.weights());
  const auto against = [&](gan_draw kind, const at::Tensor& labels) {
    const auto rows = made_rows(calls, step, kind, generator, labels_of(labels));
    return likelihood(scores(both.critic.weights(), rows.features), rows.labels, true) * share;
  };
  auto fooled = against(gan_draw::made, real.labels);
  if (replays)
    fooled = fooled + against(gan_draw::old_made, old.labels);
  both.generator.step(gradients_of(fooled, {generator}).front(), with_.rates);
}

std::vector<program_step> gan_game::run(std::span<const program_call> calls) const {
  const auto slice = calls.front().slice;
  players both;
  if (slice == 0)
    both = {.generator = adam(stacked(calls, "generator")), .critic = adam(stacked(calls, "critic"))};
  else
    both = {.generator = adam::loaded("generator", calls), .critic = adam::loaded("critic", calls)};
  const auto first = slice * gan_steps_of_slice, last = std::min(with_.steps, first + gan_steps_of_slice);
  for (auto step = first; step < last; ++step)
    play(calls, both, step);

  std::vector<program_step> steps;
  for (std::int64_t k = 0; k < std::ssize(calls); ++k) {
    program_step step{.finished = last == with_.steps,
                      .progress = static_cast<double>(last) / static_cast<double>(with_.steps)};
    if (step.finished) {
      step.tensors = {{"generator", both.generator.weights()[k]}, {"critic", both.critic.weights()[k]}};
    } else {
      both.generator.save("generator", k, step.tensors);
      both.critic.save("critic", k, step.tensors);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

} // namespace

program_ref gan_program(std::shared_ptr<const feature_gan> gan, const gan_training& with) {
  return std::make_shared<gan_game>(std::move(gan), with);
}

} // namespace mneme
