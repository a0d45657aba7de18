#include "actors/run/calibration.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/models/work_count.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/optimizers.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

constexpr std::int64_t repeats_min = 3;
constexpr std::int64_t sizes_in_batches[] = {1, 2, 4, 8, 16};
constexpr std::int64_t rows_max = 4096; // largest job

struct timed_size {
  double rows = 0.0, seconds = 0.0;
};

/// Model: time = fixed_s + rows * row_s. The line is fitted with least squares of relative errors, so that all job
/// sizes have equal weight.
struct line_of_time {
  double fixed_s = 0.0, row_s = 0.0;
};
line_of_time fitted(const std::vector<timed_size>& sizes) {
  double w = 0.0, wx = 0.0, wxx = 0.0, wy = 0.0, wxy = 0.0;
  for (const auto& [rows, seconds] : sizes) {
    const double weight = 1.0 / (seconds * seconds);
    w += weight, wx += weight * rows, wxx += weight * rows * rows;
    wy += weight * seconds, wxy += weight * rows * seconds;
  }
  const double determinant = w * wxx - wx * wx;
  if (sizes.size() < 2 || determinant <= 0.0)
    return {.row_s = wxy / wxx};
  const line_of_time both{.fixed_s = (wxx * wy - wx * wxy) / determinant, .row_s = (w * wxy - wx * wy) / determinant};
  return both.fixed_s >= 0.0 ? both : line_of_time{.row_s = wxy / wxx};
}

class calibrator {
public:
  calibrator(const run_context& run, double seconds)
      : run_(run), seconds_(seconds), executor_(make_executor(run.device)),
        start_(weights_only(initial_weights(*run.net, static_cast<std::uint64_t>(run.scenario.seed)))) {}

  calibration measure() {
    calibration result{.device = run_.device};
    const auto training = timed(true), looking = timed(false);
    const auto train = fitted(training), forward = fitted(looking);
    result.repeats = repeats_;
    result.train_row_s = train.row_s;
    result.forward_row_s = std::min(forward.row_s, train.row_s);
    const double step_row_s = optimizer_step_s() / static_cast<double>(batch());
    result.optimizer_row_s = std::min(step_row_s, train.row_s - result.forward_row_s);
    result.backward_row_s = result.train_row_s - result.forward_row_s - result.optimizer_row_s;
    const auto pass = work_of_pass(*run_.net, run_.tasks->train->shape(), 1, classes());
    result.train_row_flops = pass.forward + pass.backward;
    result.profile = {.flops_per_second = result.train_row_flops / train.row_s,
                      .job_start = rounded_up(train.fixed_s),
                      .memory = {static_cast<std::int64_t>(available_memory().bytes)},
                      .nets = {{.net = run_.scenario.model.name,
                                .parameters = run_.net->size(),
                                .batch = run_.scenario.training.batch,
                                .train_rows_per_second = 1.0 / train.row_s,
                                .forward_rows_per_second = 1.0 / result.forward_row_s}}};
    return result;
  }

private:
  [[nodiscard]] std::int64_t batch() const {
    const auto stated = run_.scenario.training.batch;
    return stated > 0 ? stated : training_section{}.batch;
  }
  [[nodiscard]] class_range classes() const { return {0, std::min(run_.tasks->classes, run_.net->classes())}; }

  /// Returns `count` rows of the first task. Rows repeat if the task has fewer.
  [[nodiscard]] sample_view rows_of(std::int64_t count) const {
    const auto& task = run_.tasks->tasks.front().train;
    auto rows = std::make_shared<std::vector<std::int64_t>>();
    for (std::int64_t i = 0; i < count; ++i)
      rows->push_back(task[static_cast<std::size_t>(i) % task.size()]);
    return {.source = run_.tasks->train, .rows = std::move(rows)};
  }

  [[nodiscard]] work job_of(std::int64_t rows, bool trains) const {
    if (!trains)
      return extract_job{.net = run_.net, .weights = start_, .samples = rows_of(rows), .logits = classes().size() > 0};
    train_job training{.net = run_.net, .start = start_, .samples = rows_of(rows)};
    training.options = options_for_round(run_.scenario.training, run_.scenario.model.trainable, classes(), 0, 1);
    training.options.epochs = 1;
    return training;
  }

  /// Measures jobs of several sizes; the time of a size is the median of its measurements.
  std::vector<timed_size> timed(bool trains) {
    std::vector<timed_size> sizes;
    for (const auto batches : sizes_in_batches) {
      const auto rows = batches * batch();
      if (rows > rows_max && !sizes.empty())
        break;
      const job repeated{.id = {}, .request = job_of(rows, trains)};
      run_once(repeated); // warm-up: LibTorch's first call builds plans
      std::vector<double> times;
      for (const recorder_stopwatch total; std::ssize(times) < repeats_min || total.seconds() < seconds_ / 12.0;) {
        const recorder_stopwatch watch;
        run_once(repeated);
        times.push_back(watch.seconds());
      }
      repeats_ = repeats_ == 0 ? std::ssize(times) : std::min<std::int64_t>(repeats_, std::ssize(times));
      sizes.push_back({static_cast<double>(rows), median(times)});
    }
    return sizes;
  }

  void run_once(const job& repeated) {
    const auto done = executor_->run(std::span(&repeated, 1));
    if (const auto* const reason = std::get_if<std::string>(&done.front()))
      throw std::runtime_error("a job of the net failed: " + *reason);
    const auto& output = std::get<work_output>(done.front());
    if (const auto* const looked = std::get_if<extract_output>(&output)) // the copy to the CPU waits until the device
                                                                         // is done
      static_cast<void>(looked->features.cpu());
  }

  [[nodiscard]] double optimizer_step_s() const {
    const auto options = options_for_round(run_.scenario.training, run_.scenario.model.trainable, classes(), 0, 1);
    if (optimizer::is_plain_sgd(options))
      return 0.0;
    const auto weights = at::zeros({1, run_.net->size()}), gradients = at::zeros({1, run_.net->size()});
    optimizer stepping(options, {{.offset = 0, .size = run_.net->size()}}, weights, gradients);
    std::vector<double> times;
    std::int64_t taken = 0;
    for (const recorder_stopwatch total; std::ssize(times) < repeats_min || total.seconds() < seconds_ / 12.0;) {
      const recorder_stopwatch watch;
      ++taken;
      stepping.step({.first = 0, .count = 1}, std::span(&taken, 1));
      times.push_back(watch.seconds());
    }
    return median(times);
  }

  static double median(std::vector<double>& times) {
    const auto middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  const run_context& run_;
  double seconds_;
  std::unique_ptr<executor> executor_;
  tensors_ref start_;
  std::int64_t repeats_ = 0;
};

} // namespace

expected<calibration> calibrate(const scenario& settings, double seconds) {
  disable_intra_op_threads(); // as workers do
  auto alone = settings;      // the devices of the scenario are not used
  alone.devices.profiles.clear();
  alone.devices.profiles_read.clear();
  diagnostics warnings;
  const auto run = load_run_context(alone, {.use = run_context_use::check, .warnings = &warnings});
  if (!run)
    return tl::unexpected(run.error());
  auto measured = calibrator(**run, seconds).measure();
  measured.warnings = std::move(warnings);
  return measured;
}

} // namespace mneme
