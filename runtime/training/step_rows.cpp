#include "runtime/training/step_rows.hpp"
#include "runtime/base/check.hpp"
#include "runtime/method/second_view.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

// Bits that separate the random streams of replayed rows from those of the client's own rows.
constexpr std::uint64_t second_shuffles = std::uint64_t{1} << 32U; // after the indices of all epochs
constexpr std::int64_t second_rows = std::int64_t{1} << 31U;       // after all row positions

void shuffle_rows(const train_job& job, std::uint64_t index, std::span<std::int64_t> order) {
  auto key = key_for(job.stream, purpose::shuffle);
  key.index = index;
  std::iota(order.begin(), order.end(), 0);
  if (!job.options.in_order && order.size() > 1)
    rng_stream(key).shuffle(order);
}

} // namespace

// -- row positions ----------------------------------------------------------------------------------------------------

void replay_order::begin(const train_job& job, const step_plan& plan) {
  job_ = &job;
  is_second_view_ = has_second_view(job);
  plan_ = plan;
  pass_ = -1;
}

void replay_order::shuffle(std::int64_t pass) {
  pass_ = pass;
  shuffled_.resize(static_cast<std::size_t>(job_->replay.samples.size()));
  const auto index = static_cast<std::uint64_t>(pass);
  shuffle_rows(*job_, is_second_view_ ? index : second_shuffles | index, shuffled_);
}

std::span<const std::int64_t> replay_order::at(std::int64_t number) {
  const auto size = job_->replay.samples.size(), steps = plan_.steps(), s = number % steps, rows = plan_.rows_of(s);
  const bool continues = steps == 1 && !is_second_view_; // into the next shuffle
  const auto first = continues ? number * rows : number / steps * size + s * plan_.batch_rows;
  taken_.clear();
  for (auto i = first; i < first + rows; ++i) {
    if (i / size != pass_)
      shuffle(i / size);
    taken_.push_back(shuffled_[static_cast<std::size_t>(i % size)]);
  }
  return taken_;
}

void client_training_rows::shuffle(std::int64_t epoch) { shuffle_rows(*job, static_cast<std::uint64_t>(epoch), order); }

// -- rows, labels, weights and targets --------------------------------------------------------------------------------

void step_rows::clear() {
  rows_.clear();
  augment_.clear();
  noise_.clear();
  runs_.clear();
}

void step_rows::add(client_training_rows& client, const step_shape& shape, std::int64_t epoch, std::int64_t s,
                    const step_targets& to) {
  const auto& job = *client.job;
  const auto real = client.plan.rows_of(s), first = options_.batch_rows == 0 ? 0 : s * options_.batch_rows;
  const double share = has_second_view(job) ? 0.5 : 1.0; // of a row's weight in one view
  append({.samples = job.samples,
          .annotations = job.annotations,
          .positions = client.order.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(real)),
          .padded = shape.own,
          .weight = static_cast<float>(share) / static_cast<float>(real),
          .augment = options_.augment,
          .draw = epoch},
         job.stream, to);
  if (shape.replayed == 0)
    return;
  const auto number = epoch * client.plan.steps() + s, classes = options_.classes.size();
  const auto weight = share * options_.replay_weight / static_cast<double>(client.replayed_rows(number));
  append({.samples = job.replay.samples,
          .annotations = job.replay.annotations,
          .positions = client.replay.at(number),
          .padded = shape.replayed,
          .weight = static_cast<float>(weight),
          .augment = options_.replay_augment.value_or(options_.augment),
          .draw = number,
          .place = second_rows},
         job.stream,
         {.labels = to.labels + shape.own,
          .weights = to.weights + shape.own,
          .targets = to.targets ? to.targets + shape.own * classes : nullptr});
}

void step_rows::append(const part& rows, const rng_key& stream, const step_targets& to) {
  const auto& source = *rows.samples.source;
  if (runs_.empty() || *runs_.back().source != rows.samples.source)
    runs_.push_back({.source = &rows.samples.source, .first = rows_.size()});
  const auto first = rows_.size(), real = rows.positions.size();
  rows_.resize(first + static_cast<std::size_t>(rows.padded), padding_row);
  const auto* const listed = rows.samples.rows->data();
  for (std::size_t i = 0; i < real; ++i)
    rows_[first + i] = listed[rows.positions[i]];
  const auto place_of = [&](std::size_t i) {
    return rows.place ? *rows.place + static_cast<std::int64_t>(i) : rows.positions[i];
  };
  if (options_.augment != augmentation_kind::none || rows.augment != augmentation_kind::none)
    augment_.resize(rows_.size()); // rows of other sets are not augmented
  for (std::size_t i = 0; i < real && rows.augment != augmentation_kind::none; ++i)
    augment_[first + i] = draw_augmentation(rows.augment, stream, rows.draw, place_of(i));
  if (source.deviations.defined()) {
    noise_.resize(rows_.size()); // rows of earlier parts have no noise
    for (std::size_t i = 0; i < real; ++i)
      noise_[first + i] = noise_key(stream, rows.draw, place_of(i));
  }
  write_marks(rows, std::span(rows_).subspan(first, real), to);
}

/// Writes labels, weights and targets of a part. @param listed row numbers of the part, without padding
void step_rows::write_marks(const part& rows, std::span<const std::int64_t> listed, const step_targets& to) const {
  const auto& source = *rows.samples.source;
  const auto& covered = options_.classes;
  const bool has_soft_targets = rows.annotations.targets.defined();
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto label = source.label(listed[i]);
    const bool known = covered.size() == 0 || !reads_labels_ || (covered.low <= label && label < covered.high);
    if (!known && !has_soft_targets)
      throw std::invalid_argument("row " + std::to_string(listed[i]) + " has label " + std::to_string(label) +
                                  ", but the loss covers labels " + std::to_string(covered.low) + " to " +
                                  std::to_string(covered.high - 1));
    to.labels[i] = known ? label - covered.low : -1;
    to.weights[i] = rows.weight;
  }
  for (std::size_t i = 0; rows.annotations.weights && i < listed.size(); ++i)
    to.weights[i] *= (*rows.annotations.weights)[static_cast<std::size_t>(rows.positions[i])];
  const auto padding = rows.padded - std::ssize(listed);
  std::fill_n(to.labels + listed.size(), padding, -1);
  std::fill_n(to.weights + listed.size(), padding, 0.0F);
  if (to.targets)
    write_targets(rows, to);
}

/// Writes soft targets. A row without a target gets its label as a one-hot vector; padding gets zeros.
void step_rows::write_targets(const part& rows, const step_targets& to) const {
  const auto classes = options_.classes.size();
  std::fill_n(to.targets, rows.padded * classes, 0.0F);
  for (std::size_t i = 0; i < rows.positions.size(); ++i) {
    float* const target = to.targets + static_cast<std::int64_t>(i) * classes;
    if (rows.annotations.targets.defined())
      std::copy_n(rows.annotations.targets.const_data_ptr<float>() + rows.positions[i] * classes, classes, target);
    else
      target[to.labels[i]] = 1.0F;
  }
}

// -- pixels -----------------------------------------------------------------------------------------------------------

void step_rows::gather_into(at::Tensor& out, image_store& images) const {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto& source = *runs_[i].source;
    const auto first = runs_[i].first, last = i + 1 < runs_.size() ? runs_[i + 1].first : rows_.size();
    auto target = out.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first));
    const auto part_of = [&]<class Value>(const std::vector<Value>& whole, bool is_read) {
      return is_read ? std::span(whole).subspan(first, last - first) : std::span<const Value>{};
    };
    images.gather_into(target, source, part_of(rows_, true), part_of(augment_, !augment_.empty()),
                       part_of(noise_, source->deviations.defined()));
  }
}

void step_rows::gather_into(float* out) const {
  MNEME_CHECK(runs_.size() == 1, runs_.size());
  gather_any(**runs_[0].source, rows_, augment_, noise_, out);
}

} // namespace mneme
