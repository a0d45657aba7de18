#include "runtime/method/training.hpp"
#include "runtime/base/check.hpp"
#include <cmath>
#include <numbers>
#include <stdexcept>
namespace mneme {
namespace {

/// Learning rate of round r (from 0) of `rounds`, by the schedule.
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
          .label_smoothing = from.label_smoothing,
          .drop_last = from.drop_last,
          .trained = part,
          .classes = classes};
}

parameter_choice trained_parameters(const model& net, trainable_part part, const std::vector<std::string>& layers,
                                    bool update_running_stats) {
  if (part == trainable_part::layers && layers.empty())
    throw std::invalid_argument("training of named layers is requested, but none is named; expected at least one name");
  const auto chosen = part == trainable_part::all    ? parameter_choice{}
                      : part == trainable_part::head ? parameter_choice::head_of(net)
                      : part == trainable_part::body ? parameter_choice::body_of(net)
                                                     : parameter_choice::layers_of(net, layers);
  bool changes = part != trainable_part::body; // every other part may be empty in a net without parameters
  for (std::size_t i = 0; i < net.layout().size(); ++i)
    changes = changes || chosen.changes(net, i);
  if (!changes)
    throw std::invalid_argument("the net '" + net.identity() + "' consists of a head only, so it has no body to train");
  return update_running_stats ? chosen.with_statistics(net) : chosen;
}

} // namespace mneme
