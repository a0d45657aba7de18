#include "actors/run/run_cost.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/models/step_bytes.hpp"
#include "runtime/models/work_count.hpp"
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <sched.h>
#include <thread>
namespace mneme {
namespace {

// Units: seconds, bytes and FLOPs. A multiply-add counts as two FLOPs.

constexpr double client_round_seconds = 5e-6;       // measured overhead of scheduler and actors
constexpr double process_bytes = 150.0 * (1 << 20); // memory of libraries and thread stacks

std::int64_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const auto count = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
  return std::max<std::int64_t>(1, count > 0 ? count : std::thread::hardware_concurrency());
}

/// Number of rows in a training step of a client, which is the row dimension of its matrix products; at most 64.
std::int64_t rows_of_step(const run_context& run) {
  constexpr std::int64_t rows_max = 64;
  const auto clients = std::max<std::int64_t>(run.scenario.clients.count, 1);
  const auto mean = std::max<std::int64_t>(std::ssize(run.tasks->tasks.front().train) / clients, 1);
  const auto batch = run.scenario.training.batch;
  return std::min(rows_max, batch > 0 ? std::min(batch, mean) : mean);
}

/// FLOPs of passes through the run's net. The count of each pass is cached.
class work_of_net {
public:
  explicit work_of_net(const run_context& run) : net_(*run.net), shape_(run.tasks->train->shape()) {}

  const pass_work& of_row(class_range range) {
    const auto classes = of_head(range);
    auto& known = known_[{classes.low, classes.high}];
    if (!known)
      known = work_of_pass(net_, shape_, 1, classes);
    return *known;
  }

  /// FLOPs of a job of this kind, per row.
  double of_row(const job_kind& kind) {
    const auto& pass = of_row(kind.classes);
    double sum = pass.forward;
    if (kind.teacher_classes.size() > 0)
      sum += of_row(kind.teacher_classes).forward;
    if (!kind.trains)
      return sum;
    // If only the head is trained, its backward pass has one product, for the gradient of its weights.
    return sum + (kind.part == trainable_part::head ? pass.forward - of_row(class_range{}).forward : pass.backward);
  }

  [[nodiscard]] pass_work of_rows(std::int64_t rows, class_range classes) const {
    return work_of_pass(net_, shape_, rows, of_head(classes));
  }

private:
  /// Limits classes to those of the net; nets of some methods have no head.
  [[nodiscard]] class_range of_head(class_range classes) const {
    return {std::min(classes.low, net_.classes()), std::min(classes.high, net_.classes())};
  }

  const model& net_;
  std::array<std::int64_t, 3> shape_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::optional<pass_work>> known_;
};

/// Measures the FLOPs per second of matrix products of this shape on one thread.
double rate_of(const product_shape& shape) {
  constexpr double measured_s = 0.02;
  const auto a = at::ones({shape.m, shape.k}), b = at::ones({shape.k, shape.n});
  auto result = at::mm(a, b); // warm-up: the first call builds plans
  const recorder_stopwatch watch;
  double products = 0.0;
  do {
    at::mm_out(result, a, b);
    ++products;
  } while (watch.seconds() < measured_s);
  return 2.0 * products * static_cast<double>(shape.m) * static_cast<double>(shape.k) * static_cast<double>(shape.n) /
         watch.seconds();
}

/// Measures the FLOPs per second of the matrix products of a pass. Only the eight most expensive shapes are measured.
double product_rate(const pass_work& pass) {
  constexpr std::size_t measured_max = 8;
  constexpr double numbers_max = 1 << 26; // largest number of elements in a measured matrix
  std::vector<std::pair<double, product_shape>> heaviest;
  for (const auto& [shape, operations] : pass.forward_by_shape)
    if (static_cast<double>(shape.m) * static_cast<double>(shape.k) < numbers_max &&
        static_cast<double>(shape.k) * static_cast<double>(shape.n) < numbers_max && operations > 0.0)
      heaviest.emplace_back(operations, shape);
  if (heaviest.empty())
    heaviest.emplace_back(1.0, product_shape{256, 256, 256});
  std::sort(heaviest.rbegin(), heaviest.rend());
  heaviest.resize(std::min(heaviest.size(), measured_max));
  double operations = 0.0, seconds = 0.0;
  for (const auto& [share, shape] : heaviest) {
    operations += share;
    seconds += share / rate_of(shape);
  }
  return operations / seconds;
}

double bytes_of(const dataset& rows) {
  const auto tensors = [](const at::Tensor& values) {
    return values.defined() ? static_cast<double>(values.nbytes()) : 0.0;
  };
  return tensors(rows.images) + tensors(rows.vectors) + static_cast<double>(rows.labels.size() * sizeof(std::int32_t));
}

std::vector<memory_part> memory_of(const run_context& run, const dry_run_result& played, std::int64_t workers) {
  const auto weights = 4.0 * static_cast<double>(run.net->size());
  const auto batch = run.scenario.training.batch > 0 ? run.scenario.training.batch : rows_of_step(run);
  const auto step = std::max(static_cast<double>(step_bytes(*run.net, batch)), static_cast<double>(1 << 20));
  const auto held = static_cast<double>(played.in_flight_max) * static_cast<double>(played.upload_bytes_of_client);
  std::vector<memory_part> parts{
      {"program", "", process_bytes},
      {"data", "data.name", bytes_of(*run.tasks->train) + bytes_of(*run.tasks->test)},
      {"server", "model.name", 5.0 * weights}, // current weights, weights at the start of the round, and sums in
                                               // float64
      {"workers", "training.batch", static_cast<double>(workers) * 2.0 * step},
      {"uploads", "worker.lookahead_memory",
       std::min(held, 4.0 * static_cast<double>(run.scenario.worker.lookahead_memory.bytes))}};
  for (auto& part : estimate_client_memory(run.scenario))
    parts.push_back(std::move(part));
  return parts;
}

} // namespace

double run_cost::memory_bytes() const {
  double sum = 0.0;
  for (const auto& part : memory)
    sum += part.bytes;
  return sum;
}

expected<run_cost> estimate_cost(const scenario& settings, std::int64_t threads) {
  disable_intra_op_threads(); // as workers do
  diagnostics warnings;
  auto loaded = load_run_context(settings, {.use = run_context_use::check, .warnings = &warnings});
  if (!loaded)
    return tl::unexpected(loaded.error());
  const auto& run = **loaded;
  auto played = dry_run(run);
  if (!played)
    return tl::unexpected(played.error());
  run_cost cost{.played = std::move(*played), .room = available_memory(), .warnings = std::move(warnings)};
  work_of_net work(run);
  for (const auto& [kind, rows] : cost.played.client_rows)
    cost.train_flops += rows * work.of_row(kind);
  for (const auto& [kind, rows] : cost.played.evaluated_rows)
    cost.evaluate_flops += rows * work.of_row(kind);
  const auto layout = layout_of(run, threads > 0 ? threads : allowed_cores());
  cost.workers = std::clamp<std::int64_t>(cost.played.in_flight_max, 1, layout.workers);
  cost.memory = memory_of(run, cost.played, layout.workers);
  cost.flops_per_second = product_rate(work.of_rows(rows_of_step(run), {0, run.tasks->classes}));
  cost.seconds =
      (cost.train_flops + cost.evaluate_flops) / (cost.flops_per_second * static_cast<double>(cost.workers)) +
      client_round_seconds * static_cast<double>(cost.played.report.client_rounds);
  return cost;
}

} // namespace mneme
