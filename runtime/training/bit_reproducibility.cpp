#include "runtime/training/bit_reproducibility.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ops/empty.h>
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <thread>
namespace mneme {
namespace {

// Axes: K models, B rows of a step, P weights of a model.

constexpr std::int64_t line_floats = 16;
constexpr std::int64_t clients = 3, rows_of_client = 5;
constexpr std::int64_t classes = 4;
constexpr std::array<std::int64_t, 3> shape{3, 8, 8};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

model_ref small_net(const std::string& name, const std::vector<std::pair<std::string, std::int64_t>>& numbers) {
  const auto kinds = models();
  const auto entry = std::find_if(kinds.begin(), kinds.end(), [&](const auto& known) { return known.name == name; });
  MNEME_CHECK(entry != kinds.end(), name);
  const auto kind = entry->make();
  key_table keys;
  kind->keys(keys);
  for (const auto& [key, number] : numbers)
    *std::get<std::int64_t*>(keys.find(key)->target) = number;
  auto net = kind->build(shape, classes);
  MNEME_CHECK(net.has_value(), name);
  return *net;
}

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t index) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw(key_for({.seed = 1, .index = index}, purpose::synthetic_data));
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(-0.2, 0.2));
  return values;
}

/// Returns a copy that begins `place` floats after the start of a cache line.
at::Tensor moved(const at::Tensor& values, std::int64_t place) {
  const auto memory = at::empty({values.numel() + 2 * line_floats}, at::kFloat);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.const_data_ptr()) / sizeof(float);
  const auto beyond = static_cast<std::int64_t>(address % line_floats);
  return memory.narrow(0, (line_floats - beyond) % line_floats + place, values.numel())
      .view(values.sizes())
      .copy_(values);
}

/// Operands of one step of one model.
struct drawn_step {
  at::Tensor weights{}, inputs{}, d_logits{}; // [1, P], [1, B, C, H, W], [1, B, classes]
};

/// Returns the gradient [1, P] of one model, all of whose operands begin `place` floats after a cache line.
at::Tensor gradient_at(const model& net, const drawn_step& step, std::int64_t place) {
  const auto weights = moved(step.weights, place);
  auto gradient = moved(step.weights, place); // the call does not write parameters that are not trained
  const std::array<rng_key, 1> streams{{{.seed = 1}}};
  const training_mode training{streams};
  tape kept;
  const class_range every_class{0, classes};
  static_cast<void>(net.forward(weights, moved(step.inputs, place), every_class, &kept, &training));
  net.backward(weights, kept, every_class, moved(step.d_logits, place), {}, {}, {gradient});
  return gradient;
}

reproducibility_check check_places(const std::vector<model_ref>& nets) {
  reproducibility_check finding{.name = "operands at any address",
                                .details =
                                    fmt::format("{} nets, {} offsets in a cache line", nets.size(), line_floats)};
  for (const auto& net : nets) {
    const drawn_step step{.weights = drawn({1, net->size()}, 1),
                          .inputs = drawn({1, rows_of_client, shape[0], shape[1], shape[2]}, 2),
                          .d_logits = drawn({1, rows_of_client, classes}, 3)};
    const auto at_line = gradient_at(*net, step, 0);
    for (std::int64_t place = 1; place < line_floats; ++place)
      if (!same_bits(gradient_at(*net, step, place), at_line))
        return {finding.name,
                fmt::format("{}: other bits at an offset of {} floats in a cache line", net->identity(), place), false};
  }
  return finding;
}

/// Rows of random pixels for all clients.
std::shared_ptr<const dataset> drawn_rows() {
  auto source = std::make_shared<dataset>();
  const auto rows = clients * rows_of_client;
  source->images = at::empty({rows, shape[0], shape[1], shape[2]}, at::kByte);
  rng_stream draw(key_for({.seed = 1}, purpose::synthetic_data));
  for (std::int64_t i = 0; i < source->images.numel(); ++i)
    source->images.mutable_data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw.below(256));
  for (std::int64_t row = 0; row < rows; ++row)
    source->labels.push_back(static_cast<std::int32_t>(row % classes));
  source->transforms.resize(1);
  source->scale.assign(static_cast<std::size_t>(shape[0]), 1.0F / 255.0F);
  source->shift.assign(static_cast<std::size_t>(shape[0]), -0.5F);
  return source;
}

/// One training job per client, with rows for a full step and a shorter one.
std::vector<job> client_jobs(const model_ref& net, const std::shared_ptr<const dataset>& rows) {
  std::vector<job> jobs;
  for (std::int64_t c = 0; c < clients; ++c) {
    std::vector<std::int64_t> own;
    for (std::int64_t row = 0; row < rows_of_client; ++row)
      own.push_back(c * rows_of_client + row);
    train_job training{.net = net,
                       .start = weights_only(initial_weights(*net, 1)),
                       .samples = {rows, std::make_shared<const std::vector<std::int64_t>>(std::move(own))},
                       .objective = cross_entropy_objective(),
                       .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(c)}}};
    training.options.batch_rows = 4;
    training.options.classes = {0, classes};
    jobs.push_back({.id = {.assignment = {static_cast<std::uint64_t>(c)}}, .request = std::move(training)});
  }
  return jobs;
}

at::Tensor trained_weights(const job_outcome& outcome) {
  const auto* const done = std::get_if<work_output>(&outcome);
  return done ? std::get<train_output>(*done).weights->at(flat_weights) : at::Tensor{};
}

/// True if the outcomes have exactly these weights.
bool are_trained_to(const outcomes& computed, const std::vector<at::Tensor>& weights) {
  for (std::size_t i = 0; i < computed.size(); ++i)
    if (const auto own = trained_weights(computed[i]); !own.defined() || !same_bits(own, weights[i]))
      return false;
  return true;
}

/// Jobs of the clients of one net, and the weights that each has after training alone on this thread.
struct trained_alone {
  std::vector<job> jobs{};
  std::vector<at::Tensor> weights{};
};

std::vector<trained_alone> train_alone(const std::vector<model_ref>& nets) {
  std::vector<trained_alone> runs;
  const auto rows = drawn_rows();
  const auto single = make_executor("cpu");
  for (const auto& net : nets) {
    trained_alone alone{.jobs = client_jobs(net, rows)};
    for (const auto& request : alone.jobs)
      alone.weights.push_back(trained_weights(single->run({&request, 1}).front()));
    runs.push_back(std::move(alone));
  }
  return runs;
}

reproducibility_check check_company(const std::vector<model_ref>& nets, const std::vector<trained_alone>& alone) {
  reproducibility_check finding{.name = "clients alone and fused",
                                .details = fmt::format("{} nets, {} clients", nets.size(), clients)};
  const auto fused = make_executor("cpu");
  for (std::size_t n = 0; n < nets.size(); ++n)
    if (!are_trained_to(fused->run(alone[n].jobs), alone[n].weights))
      return {finding.name, nets[n]->identity() + ": a fused client has other bits", false};
  return finding;
}

reproducibility_check check_threads(const std::vector<model_ref>& nets, const std::vector<trained_alone>& alone) {
  constexpr std::size_t threads = 3;
  reproducibility_check finding{.name = "one thread and several",
                                .details = fmt::format("{} nets, {} concurrent threads", nets.size(), threads)};
  std::array<std::string, threads> differing;
  {
    std::vector<std::jthread> computing;
    for (auto& bits : differing)
      computing.emplace_back([&] {
        disable_intra_op_threads();
        if (intra_op_threads() != 1)
          bits = "LibTorch would split an operation over several threads";
        const auto own = make_executor("cpu");
        for (std::size_t n = 0; n < nets.size(); ++n)
          if (!are_trained_to(own->run(alone[n].jobs), alone[n].weights))
            bits = nets[n]->identity() + ": other bits on another thread";
      });
  }
  for (const auto& bits : differing)
    if (!bits.empty())
      return {finding.name, bits, false};
  return finding;
}

} // namespace

std::vector<model_ref> small_nets() {
  return {small_net("mlp", {}), small_net("cnn", {}),
          small_net("vit", {{"patch", 4}, {"width", 24}, {"depth", 2}, {"heads", 3}, {"adapter", 5}})};
}

std::vector<reproducibility_check> check_reproducibility(const std::vector<model_ref>& nets) {
  MNEME_CHECK(!nets.empty());
  disable_intra_op_threads();
  auto places = check_places(nets);
  const auto alone = train_alone(nets);
  return {std::move(places), check_company(nets, alone), check_threads(nets, alone)};
}

std::string warning_of(const std::vector<reproducibility_check>& findings) {
  for (const auto& finding : findings)
    if (!finding.holds)
      return fmt::format("this machine does not give equal bits ({}: {}): digests may differ from run to run; run "
                         "`mneme doctor` for details",
                         finding.name, finding.details);
  return {};
}

} // namespace mneme
