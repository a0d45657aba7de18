// bench_adjustment: client-rounds per CPU second of FedHAF's two stages, by the width of a fused group. There are 50
// clients with 100 new rows and 20 exemplars each, 512 features, batch 64, two epochs of the head and one of the
// module. The rates are compared with sequential LibTorch code: one client after the other, autograd, standard
// operators. The benchmark also measures an upper bound: the same matrix products alone, computed by MKL at the same
// shapes, and MKL's rate for a large square matrix.
//   build/release/bench_adjustment [SECONDS_PER_CELL]
#include "runtime/training/executor.hpp"
#include "strategies/fedhaf/adjustment_losses.hpp"
#include "strategies/shared/adjustment_net.hpp"
#include "strategies/shared/feature_memory.hpp"
#include "tools/bench/bench_seconds.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <c10/core/GradMode.h>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;

namespace {

// Axes: n rows of a client, D features, P weights.

constexpr std::int64_t features = 512, fresh_rows = 100, old_rows = 20, batch = 64, clients = 50;
constexpr std::int64_t old_classes = 10, classes = 20;
const std::vector<class_range> tasks{{0, old_classes}, {old_classes, classes}};

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  auto made = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return made;
}

embedding_rows rows_of_client(std::uint64_t client) {
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < fresh_rows + old_rows; ++i)
    labels.push_back(i < fresh_rows ? old_classes + i % (classes - old_classes) : i % old_classes);
  return {.features = drawn({fresh_rows + old_rows, features}, client), .labels = at::tensor(labels, at::kInt)};
}

const model_ref& net() {
  static const auto made = adjustment_net({}, features, classes);
  return made;
}
tensors_ref weights(std::uint64_t seed) {
  return weights_only(draw_adjustment(*net(), matrix_draw::kaiming, {.seed = seed}));
}

/// Trained parameters and loss terms of a stage.
struct stage {
  const char* part;
  std::int64_t epochs;
  adjustment_terms terms;
};
const stage head{"head", 2, {.cross_entropy = 1.0, .distillation = 1.0, .tasks = tasks}};
const stage module{"adjustment", 1, {.feature_distillation = 2.0, .feature_balance = 1.0, .tasks = tasks}};

std::vector<job> jobs_of(const stage& which) {
  const auto start = weights(1), teacher = weights(2);
  const auto objective = adjustment_objective(which.terms);
  std::vector<job> jobs;
  for (std::uint64_t client = 0; client < clients; ++client) {
    const std::vector<embedding_rows> parts{rows_of_client(client)};
    train_job made{.net = net(), .start = start, .samples = rows_to_train(parts, features), .objective = objective};
    made.options = {.epochs = which.epochs,
                    .batch_rows = batch,
                    .learning_rate = 0.02,
                    .momentum = 0.9,
                    .clip_norm = 5.0,
                    .trained = trainable_part::layers,
                    .layers = {which.part},
                    .classes = {0, classes}};
    made.add_teacher(teacher, {.classes = {0, old_classes}, .features = true, .only_labels = {0, old_classes}});
    made.stream = {.seed = 1, .client = {static_cast<std::uint32_t>(client)}};
    jobs.push_back({.id = {{client}, 0, 0}, .request = std::move(made)});
  }
  return jobs;
}

/// Returns `count` per CPU second of a call: the median of at least five calls.
double rate_of(std::int64_t count, double seconds, const std::function<void()>& pass) {
  pass(); // warm up buffers and caches
  std::vector<double> took;
  for (double total = 0.0; took.size() < 5 || total < seconds; total += took.back()) {
    const double began = bench::cpu_seconds();
    pass();
    took.push_back(bench::cpu_seconds() - began);
  }
  std::nth_element(took.begin(), took.begin() + std::ssize(took) / 2, took.end());
  return static_cast<double>(count) / took[took.size() / 2];
}

double rate_at(std::size_t width, double seconds) {
  const auto runs = make_executor("cpu");
  const std::vector<std::vector<job>> stages{jobs_of(head), jobs_of(module)};
  return rate_of(clients, seconds, [&] {
    for (const auto& jobs : stages)
      for (std::size_t first = 0; first < jobs.size(); first += width)
        for (const auto& outcome : runs->run(std::span(jobs).subspan(first, std::min(width, jobs.size() - first))))
          if (std::holds_alternative<std::string>(outcome))
            std::abort();
  });
}

// -- plain LibTorch ---------------------------------------------------------------------------------------------------

/// Parameters of the net in the order of its layout, with running statistics.
struct plain_net {
  std::vector<at::Tensor> values{};
  at::Tensor masks = (drawn({batch, features}, 9) > -0.84).to(at::kFloat) / 0.8; // dropout of 20 %, drawn in advance
  explicit plain_net(const tensors_ref& flat) {
    for (const auto& entry : net()->layout())
      values.push_back(as_in_files(flat->at(flat_weights), entry).clone());
  }
  [[nodiscard]] at::Tensor named(const std::string& name) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (net()->layout()[i].name == name)
        return values[i];
    std::abort(); // impossible, because the net has every named layer
  }
  [[nodiscard]] at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, named(name + ".weight"), named(name + ".bias"));
  }
  [[nodiscard]] at::Tensor norm(const at::Tensor& x, const std::string& name, bool trained) const {
    return at::batch_norm(x, named(name + ".weight"), named(name + ".bias"), named(name + ".running_mean"),
                          named(name + ".running_var"), trained, 0.1, 1e-5, false);
  }
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x, bool module_on, bool head_on) const {
    const auto block = [&](const at::Tensor& in, const std::string& part, const std::string& i, bool on) {
      const auto kept = at::relu(norm(linear(in, part + ".fc" + i), part + ".bn" + i, on));
      return on ? kept * masks.narrow(0, 0, kept.size(0)).narrow(1, 0, kept.size(1)) : kept;
    };
    const auto first = block(x, "adjustment", "1", module_on);
    const auto last =
        norm(linear(block(first, "adjustment", "2", module_on), "adjustment.fc3"), "adjustment.bn3", module_on);
    const auto adjusted = last + at::linear(first, named("adjustment.shortcut.weight"));
    return {adjusted, linear(block(adjusted, "head", "1", head_on), "head.fc2")};
  }
};

/// Mean Euclidean norm of the rows of each class, averaged over classes.
at::Tensor mean_length(const at::Tensor& rows, const at::Tensor& labels) {
  const auto counts = at::bincount(labels).to(at::kFloat);
  const auto present = (counts > 0).sum().to(at::kFloat);
  return (rows.norm(2, {1}) / (counts.index_select(0, labels) * present)).sum();
}

void train_plainly(const embedding_rows& rows, const plain_net& teacher) {
  plain_net moving(weights(1));
  const auto n = rows.size();
  for (const auto& which : {head, module}) {
    const bool is_head = which.terms.cross_entropy > 0.0;
    std::vector<at::Tensor> trained, velocities;
    for (std::size_t i = 0; i < moving.values.size(); ++i)
      if (const auto& entry = net()->layout()[i]; entry.name.starts_with(which.part) && !entry.buffer) {
        moving.values[i].set_requires_grad(true);
        trained.push_back(moving.values[i]);
        velocities.push_back(at::zeros_like(moving.values[i]));
      }
    for (std::int64_t epoch = 0; epoch < which.epochs; ++epoch) {
      const rng_key key{.seed = 1, .purpose = first_method_purpose, .index = static_cast<std::uint64_t>(epoch)};
      const auto order = at::tensor(draw_positions(n, n, key), at::kLong);
      for (std::int64_t at = 0; at < n; at += batch) {
        const auto places = order.narrow(0, at, std::min(batch, n - at));
        const auto x = rows.features.index_select(0, places), y = rows.labels.index_select(0, places).to(at::kLong);
        const auto old = (y < old_classes).nonzero().squeeze(1), fresh = (y >= old_classes).nonzero().squeeze(1);
        const auto [f, z] = moving.forward(x, !is_head, is_head);
        const auto [tf, tz] = teacher.forward(x, false, false);
        at::Tensor loss;
        if (is_head) {
          const auto q = at::log_softmax(z.index_select(0, old).narrow(1, 0, old_classes), 1);
          const auto p = at::log_softmax(tz.index_select(0, old).narrow(1, 0, old_classes), 1);
          loss = at::cross_entropy_loss(z, y) + (q.exp() * (q - p)).sum(1).mean();
        } else {
          loss = 2.0 * (f - tf).index_select(0, old).square().mean() +
                 (mean_length(f.index_select(0, fresh), y.index_select(0, fresh)) -
                  mean_length(tf.index_select(0, old), y.index_select(0, old)))
                     .abs();
        }
        const auto gradients = torch::autograd::grad({loss}, trained);
        const c10::NoGradGuard still;
        auto length = at::zeros({});
        for (const auto& slope : gradients)
          length = length + slope.square().sum();
        const auto kept = (5.0 / (length.sqrt() + 1e-6)).clamp_max(1.0);
        for (std::size_t i = 0; i < trained.size(); ++i) {
          velocities[i].mul_(0.9).add_(gradients[i] * kept);
          trained[i].add_(velocities[i], -0.02);
        }
      }
    }
    for (auto& value : trained)
      value.set_requires_grad(false);
  }
}

double plain_rate(double seconds) {
  constexpr std::int64_t trained = 5; // number of clients, which is small because this loop is slow
  const plain_net teacher(weights(2));
  std::vector<embedding_rows> rows;
  for (std::uint64_t client = 0; client < trained; ++client)
    rows.push_back(rows_of_client(client));
  return rate_of(trained, seconds, [&] {
    for (const auto& own : rows)
      train_plainly(own, teacher);
  });
}

// -- products alone ---------------------------------------------------------------------------------------------------

/// Matrix product a [rows, terms] b [terms, columns], with memory for the result.
struct product {
  at::Tensor a, b, c;
  explicit product(std::int64_t rows, std::int64_t terms, std::int64_t columns)
      : a(drawn({rows, terms}, 1)), b(drawn({terms, columns}, 2)), c(at::empty({rows, columns}, at::kFloat)) {}
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(a.size(0)) * static_cast<double>(a.size(1)) * static_cast<double>(b.size(1));
  }
};

/// Adds the products of a linear layer: forward and, if trained, the gradients of its weights and of its input.
void add_layer(std::vector<product>& to, std::int64_t rows, std::int64_t in, std::int64_t out, bool trained,
               bool reads_trained) {
  to.emplace_back(rows, in, out);
  if (trained)
    to.emplace_back(in, rows, out);
  if (reads_trained)
    to.emplace_back(rows, out, in);
}
void add_module(std::vector<product>& to, std::int64_t rows, bool trained) {
  add_layer(to, rows, features, 512, trained, false);
  add_layer(to, rows, 512, 512, trained, trained);
  add_layer(to, rows, 512, 256, trained, trained);
  add_layer(to, rows, 512, 256, trained, trained); // shortcut
}

/// Products of a client's round if frozen parts are evaluated only once, which is the minimum that the algorithm needs.
std::vector<product> products_of_round() {
  constexpr std::int64_t steps[] = {batch, fresh_rows + old_rows - batch};
  std::vector<product> made;
  add_module(made, fresh_rows + old_rows, false); // features in stage 1, in evaluation mode
  add_module(made, old_rows, false);              // teacher features of both stages
  add_layer(made, old_rows, 256, 128, false, false);
  add_layer(made, old_rows, 128, old_classes, false, false);
  for (const auto rows : steps) {
    for (std::int64_t epoch = 0; epoch < head.epochs; ++epoch) {
      add_layer(made, rows, 256, 128, true, false);
      add_layer(made, rows, 128, classes, true, true);
    }
    add_module(made, rows, true);
  }
  return made;
}

void print_limit(double seconds) {
  auto round = products_of_round();
  double operations = 0.0;
  for (const auto& each : round)
    operations += each.operations();
  const double rate = rate_of(1, seconds, [&] {
    for (auto& each : round)
      at::mm_out(each.c, each.a, each.b);
  });
  product square(2048, 2048, 2048);
  const double squares = rate_of(1, seconds, [&] { at::mm_out(square.c, square.a, square.b); });
  const double peak = squares * square.operations();
  std::printf("  products of a client-round, %.3f GFLOP, by MKL and nothing else: %.1f a CPU second, %.0f GFLOP/s\n"
              "  a square of 2048 by MKL: %.0f GFLOP/s, or %.1f client-rounds a CPU second\n",
              operations * 1e-9, rate, rate * operations * 1e-9, peak * 1e-9, peak / operations);
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2.0;
  const double bare = plain_rate(seconds);
  std::printf("adjustment of 512 features, 100 + 20 rows, batch 64, %ld weights: width chosen %ld\n"
              "  width  client-rounds per CPU second  to width 1  to plain\n  plain %29.1f\n",
              static_cast<long>(net()->size()), static_cast<long>(choose_width(jobs_of(module)[0].request, "cpu")),
              bare);
  double alone = 0.0;
  for (const std::size_t width : {1, 4, 16, 50}) {
    const double rate = rate_at(width, seconds);
    alone = width == 1 ? rate : alone;
    std::printf("  %5zu %29.1f  %10.2f  %8.1f\n", width, rate, rate / alone, rate / bare);
  }
  print_limit(seconds);
}
