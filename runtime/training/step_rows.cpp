#include "runtime/training/step_rows.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

// Streams of the second set lie beside those of the first.
constexpr std::uint64_t second_shuffles = std::uint64_t{1} << 32U; // behind all epochs
constexpr std::int64_t second_rows = std::int64_t{1} << 31U;       // behind all positions

void shuffle_rows(const train_job& job, std::uint64_t index, std::span<std::int64_t> order) {
  auto key = key_for(job.stream, purpose::shuffle);
  key.index = index;
  std::iota(order.begin(), order.end(), 0);
  if (!job.options.in_order)
    rng_stream(key).shuffle(order);
}

} // namespace

// -- which rows -------------------------------------------------------------------------------------------------------

void replay_order::begin(const train_job& job, std::int64_t rows) {
  job_ = &job;
  rows_ = rows;
  pass_ = -1;
}

void replay_order::shuffle(std::int64_t pass) {
  pass_ = pass;
  shuffled_.resize(static_cast<std::size_t>(job_->replay.samples.size()));
  shuffle_rows(*job_, second_shuffles | static_cast<std::uint64_t>(pass), shuffled_);
}

std::span<const std::int64_t> replay_order::at(std::int64_t number) {
  const auto size = job_->replay.samples.size();
  taken_.clear();
  for (auto i = number * rows_; i < (number + 1) * rows_; ++i) {
    if (i / size != pass_)
      shuffle(i / size);
    taken_.push_back(shuffled_[static_cast<std::size_t>(i % size)]);
  }
  return taken_;
}

void client_rows::shuffle(std::int64_t epoch) { shuffle_rows(*job, static_cast<std::uint64_t>(epoch), order); }

// -- what they are ----------------------------------------------------------------------------------------------------

void step_rows::clear() {
  rows_.clear();
  augment_.clear();
  noise_.clear();
  runs_.clear();
}

void step_rows::add(client_rows& client, const step_shape& shape, std::int64_t epoch, std::int64_t s,
                    const row_marks& to) {
  const auto& job = *client.job;
  const auto real = client.plan.rows_of(s), first = options_.batch_rows == 0 ? 0 : s * options_.batch_rows;
  append({.samples = job.samples,
          .notes = job.notes,
          .positions = client.order.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(real)),
          .padded = shape.own,
          .weight = 1.0F / static_cast<float>(real),
          .draw = epoch},
         job.stream, to);
  if (shape.replayed == 0)
    return;
  const auto number = epoch * client.plan.steps() + s, classes = options_.classes.size();
  append({.samples = job.replay.samples,
          .notes = job.replay.notes,
          .positions = client.replay.at(number),
          .padded = shape.replayed,
          .weight = static_cast<float>(options_.replay_weight / static_cast<double>(client.replayed.rows)),
          .draw = number,
          .place = second_rows},
         job.stream,
         {.labels = to.labels + shape.own,
          .weights = to.weights + shape.own,
          .targets = to.targets ? to.targets + shape.own * classes : nullptr});
}

void step_rows::append(const part& rows, const rng_key& stream, const row_marks& to) {
  const auto& source = *rows.samples.source;
  if (runs_.empty() || *runs_.back().source != rows.samples.source)
    runs_.push_back({.source = &rows.samples.source, .first = rows_.size()});
  const bool noisy = source.deviations.defined(), augmented = options_.augment != augmentation_kind::none;
  if (noisy)
    noise_.resize(rows_.size()); // of others that have none, before it
  const auto real = std::ssize(rows.positions);
  for (std::int64_t i = 0; i < rows.padded; ++i) {
    if (i >= real) {
      append_padding(to, i);
      continue;
    }
    const auto position = rows.positions[static_cast<std::size_t>(i)];
    const auto place = rows.place ? *rows.place + i : position;
    rows_.push_back((*rows.samples.rows)[static_cast<std::size_t>(position)]);
    if (augmented)
      augment_.push_back(drawn_augmentation(options_.augment, stream, rows.draw, place));
    if (noisy)
      noise_.push_back(noise_key(stream, rows.draw, place));
    write_marks(rows, i, to);
  }
  if (noisy)
    noise_.resize(rows_.size());
}

void step_rows::append_padding(const row_marks& to, std::int64_t i) {
  rows_.push_back(padding_row);
  if (options_.augment != augmentation_kind::none)
    augment_.push_back({});
  to.labels[i] = -1;
  to.weights[i] = 0.0F;
  if (to.targets)
    std::fill_n(to.targets + i * options_.classes.size(), options_.classes.size(), 0.0F);
}

/// Label, weight and target of the i-th row of the part.
void step_rows::write_marks(const part& rows, std::int64_t i, const row_marks& to) const {
  const auto position = static_cast<std::size_t>(rows.positions[static_cast<std::size_t>(i)]);
  const auto row = (*rows.samples.rows)[position];
  const auto& covered = options_.classes;
  const auto label = rows.samples.source->label(row);
  const bool told = rows.notes.targets.defined(), known = covered.low <= label && label < covered.high;
  if (!known && !told)
    throw std::invalid_argument("row " + std::to_string(row) + " has label " + std::to_string(label) +
                                ", but the loss covers labels " + std::to_string(covered.low) + " to " +
                                std::to_string(covered.high - 1));
  to.labels[i] = known ? label - covered.low : -1;
  to.weights[i] = rows.notes.weights ? rows.weight * (*rows.notes.weights)[position] : rows.weight;
  if (!to.targets)
    return;
  float* const target = to.targets + i * covered.size();
  if (told)
    std::copy_n(rows.notes.targets.const_data_ptr<float>() + static_cast<std::int64_t>(position) * covered.size(),
                covered.size(), target);
  else
    std::fill_n(target, covered.size(), 0.0F), target[to.labels[i]] = 1.0F;
}

// -- pixels -----------------------------------------------------------------------------------------------------------

void step_rows::gather_into(at::Tensor& out, image_store& images) const {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto& source = *runs_[i].source;
    const auto first = runs_[i].first, last = i + 1 < runs_.size() ? runs_[i + 1].first : rows_.size();
    auto target = out.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last - first));
    const auto part_of = [&]<class Value>(const std::vector<Value>& whole, bool wanted) {
      return wanted ? std::span(whole).subspan(first, last - first) : std::span<const Value>{};
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
