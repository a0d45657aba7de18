#include "runtime/method/jobs.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/triangle.hpp"
#include "runtime/method/second_view.hpp"
#include <algorithm>
#include <xxhash.h>
namespace mneme {
namespace {

constexpr std::int64_t float_bytes = sizeof(float), double_bytes = sizeof(double);

/// Serializes a job's options to bytes for hashing. Numbers are written as their bits, strings with their length.
class key_text {
public:
  key_text& add(const std::string& text) {
    add(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  template <class Number>
  key_text& add(Number value) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  [[nodiscard]] std::uint64_t hash() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

private:
  std::string bytes_;
};

void describe(key_text& key, const dataset* source) {
  if (!source)
    return;
  for (const auto extent : source->shape())
    key.add(extent);
  key.add(source->vectors.defined()).add(source->deviations.defined());
}

/// The width M of a statistics job.
std::int64_t width_of(const statistics_job& job) {
  return job.projection.defined() ? job.projection.size(1) : job.net->feature_width();
}

void describe(key_text& key, const train_job& job) {
  const auto& options = job.options;
  static const std::string usual = cross_entropy_objective()->identity();
  key.add(job.objective ? job.objective->identity() : usual)
      .add(options.optimizer)
      .add(options.epochs)
      .add(options.batch_rows)
      .add(options.learning_rate)
      .add(options.momentum)
      .add(options.weight_decay)
      .add(options.clip_norm)
      .add(options.augment)
      .add(options.label_smoothing)
      .add(drops_short_step(options))
      .add(options.trained)
      .add(options.in_order)
      .add(options.classes.low)
      .add(options.classes.high)
      .add(options.held_classes)
      .add(options.result)
      .add(options.evaluation)
      .add(options.update_running_stats)
      .add(options.running_stats_updates)
      .add(options.replay_rows)
      .add(options.replay_weight)
      .add(options.replay_by)
      .add(options.replay_augment.has_value())
      .add(options.replay_augment.value_or(options.augment))
      .add(options.replay_short_last)
      .add(job.observation ? job.observation->identity : std::string())
      .add(options.trained_classes.low)
      .add(options.trained_classes.high)
      .add(static_cast<std::uint64_t>(options.rates.size()))
      .add(static_cast<std::uint64_t>(options.layers.size()))
      .add(job.annotations.targets.defined() || job.replay.annotations.targets.defined());
  key.add(static_cast<std::uint64_t>(options.teachers.size()));
  for (const auto& [classes, features, only_labels] : options.teachers)
    key.add(classes.low).add(classes.high).add(features).add(only_labels.low).add(only_labels.high);
  for (const auto& name : options.layers)
    key.add(name);
  for (const auto& [layer, factor] : options.rates)
    key.add(layer).add(factor);
  key.add(static_cast<std::uint64_t>(options.maps.size()));
  for (const auto& name : options.maps)
    key.add(name);
  describe(key, job.replay.samples.source.get());
}
void describe(key_text& key, const extract_job& job) { key.add(job.logits).add(job.frozen).add(job.augment); }
void describe(key_text& key, const statistics_job& job) {
  key.add(job.gram).add(job.classes.low).add(job.classes.high).add(job.parts).add(job.frozen).add(width_of(job));
}
void describe(key_text& key, const evaluate_job& job) {
  key.add(job.mask.low).add(job.mask.high).add(job.learned.kind);
}
void describe(key_text& key, const compute_job& job) { key.add(std::string(job.name)); }
/// Only calls with tensors of equal shapes are stacked. Programs themselves handle different numbers of rows.
void describe(key_text& key, const program_job& job) {
  key.add(job.body->name()).add(job.body->identity()).add(job.in ? job.in->size() : 0);
  if (!job.in)
    return;
  for (const auto& [name, value] : *job.in) {
    key.add(name).add(value.scalar_type()).add(value.dim());
    for (const auto extent : value.sizes())
      key.add(extent);
  }
}

const model& net_of(const train_job& job) { return *job.net; }
const model& net_of(const extract_job& job) { return *job.net; }
const model& net_of(const statistics_job& job) { return *job.net; }
const model& net_of(const evaluate_job& job) { return *job.learned.net; }

std::int64_t bytes_of(const train_job& job) {
  if (job.options.result == training_result::row_norms)
    return job.samples.size() * double_bytes;
  return job.net->size() * float_bytes;
}
std::int64_t bytes_of(const extract_job& job) {
  const auto row = (job.net->feature_width() + (job.logits ? job.net->classes() : 0)) * float_bytes;
  return job.samples.size() * (row + static_cast<std::int64_t>(sizeof(std::int64_t)));
}
std::int64_t bytes_of(const statistics_job& job) {
  const auto width = width_of(job);
  return double_bytes * ((job.gram ? triangle_size(width) : 0) + job.parts * job.classes.size() * (width + 1));
}
std::int64_t bytes_of(const evaluate_job& job) {
  return static_cast<std::int64_t>(sizeof(evaluate_output)) +
         (job.lists_answers ? job.samples.size() * static_cast<std::int64_t>(sizeof(std::int32_t)) : 0);
}
/// Estimated size of the result, which is seldom larger than the input.
std::int64_t bytes_of(const compute_job& job) { return job.in ? job.in->bytes() : 0; }
std::int64_t bytes_of(const program_job& job) {
  std::int64_t sum = 0;
  for (const auto& promised : job.body->outcome(job))
    sum += promised.bytes();
  return sum;
}

} // namespace

std::map<std::string, double> train_output::loss_terms() const {
  if (several_terms)
    return *several_terms;
  return loss_name ? std::map<std::string, double>{{loss_name, loss_mean}} : std::map<std::string, double>{};
}

fuse_key key_of(const work& request) {
  key_text key;
  std::visit(
      [&]<class Job>(const Job& job) {
        if constexpr (requires { net_of(job); })
          key.add(net_of(job).identity());
        if constexpr (requires { job.samples; })
          describe(key, job.samples.source.get());
        describe(key, job);
      },
      request);
  return {.kind = static_cast<std::uint8_t>(request.index()), .options = key.hash()};
}

std::int64_t rows_of(const work& request) {
  const auto rows = std::visit(
      []<class Job>(const Job& job) -> std::int64_t {
        if constexpr (requires { job.rows; })
          return job.rows;
        else
          return job.samples.size();
      },
      request);
  const auto* training = std::get_if<train_job>(&request);
  if (!training)
    return rows;
  const auto& options = training->options;
  const auto batch = options.batch_rows == 0 ? std::max<std::int64_t>(rows, 1) : options.batch_rows;
  const auto replayed = std::min(options.replay_rows, training->replay.samples.size());
  const auto taken = drops_short_step(options) ? rows / batch * batch : rows;
  constexpr __int128 rows_max = 1'000'000'000'000'000; // the sum over a wave's jobs then fits int64
  const auto rows_of_epoch = has_second_view(*training)
                                 ? 2 * static_cast<__int128>(taken)
                                 : static_cast<__int128>(ceil_div(taken, batch)) * replayed + taken;
  return static_cast<std::int64_t>(std::min(rows_of_epoch * std::max<std::int64_t>(options.epochs, 1), rows_max));
}

std::int64_t outcome_bytes(const work& request) {
  return std::visit([](const auto& job) { return bytes_of(job); }, request);
}

bool is_interrupted(const outcomes& results) {
  return std::any_of(results.begin(), results.end(), [](const job_outcome& result) {
    const auto* const reason = std::get_if<std::string>(&result);
    return reason && *reason == interrupted_text;
  });
}

const char* work_name(const work& request) {
  static constexpr const char* names[] = {"train", "extract", "statistics", "evaluate", "compute", "program"};
  static_assert(std::size(names) == std::variant_size_v<work>);
  return names[request.index()];
}

} // namespace mneme
