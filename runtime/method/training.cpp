#include "runtime/method/training.hpp"
#include "runtime/base/check.hpp"
#include <cmath>
#include <numbers>
namespace mneme {
namespace {

/// The learning rate of round r (from 0) of `rounds`.
double scheduled_rate(const training_section& from, std::int64_t r, std::int64_t rounds) {
  double rate = from.learning_rate;
  if (from.schedule == schedule_kind::cosine)
    rate *= (1.0 + std::cos(std::numbers::pi * static_cast<double>(r) / static_cast<double>(rounds))) / 2.0;
  if (from.schedule == schedule_kind::step)
    for (const auto milestone : from.milestones)
      rate *= milestone <= r ? from.factor : 1.0;
  return rate;
}

} // namespace

training_options options_for_round(const training_section& from, trainable_part part, class_range classes,
                                   std::int64_t round_of_task, std::int64_t rounds_of_task) {
  MNEME_CHECK(0 <= round_of_task && round_of_task < rounds_of_task, round_of_task, rounds_of_task);
  return {.optimizer = from.optimizer,
          .epochs = from.epochs,
          .batch_rows = from.batch,
          .learning_rate = scheduled_rate(from, round_of_task, rounds_of_task),
          .momentum = from.momentum,
          .weight_decay = from.weight_decay,
          .clip_norm = from.clip_norm,
          .augment = from.augment,
          .head_only = part == trainable_part::head,
          .classes = classes};
}

} // namespace mneme
