#include "runtime/federation/current_round.hpp"
#include "runtime/federation/persisted_values.hpp"
#include "runtime/method/transfer_encoding.hpp"
namespace mneme {

void current_round::open_task(task_id task, const federation_settings& settings) {
  info.task = task;
  info.seen_classes = settings.tasks.at(task.value).seen_classes;
  info.current_classes = settings.tasks.at(task.value).current_classes;
  info.round_of_task = 0;
}

void current_round::open(opened_round answer) {
  opened = std::move(answer);
  for (std::size_t p = 0; p < parties.size(); ++p)
    if (last_advice[p].advice) {
      auto with_advice = *opened.in;
      with_advice.*parties[p].advice = last_advice[p].advice;
      opened.in = std::make_shared<const broadcast>(std::move(with_advice));
    }
  older_tasks_.clear();
  blind_ = nullptr;
  is_open = true;
  missing = folded = 0;
  deadline = never;
}

broadcast_ref current_round::broadcast_in(task_id task, const federation_settings& settings) {
  if (settings.hide_task_from_clients) {
    if (!blind_) {
      auto changed = *opened.in;
      changed.info = {.round = info.round, .seen_classes = info.seen_classes, .current_classes = info.seen_classes};
      blind_ = std::make_shared<const broadcast>(std::move(changed));
    }
    return blind_;
  }
  if (task == info.task || settings.rows->central())
    return opened.in;
  older_tasks_.resize(info.task.value);
  auto& sent = older_tasks_.at(task.value);
  if (!sent) {
    auto changed = *opened.in;
    changed.info.task = task;
    changed.info.current_classes = settings.tasks.at(task.value).current_classes;
    sent = std::make_shared<const broadcast>(std::move(changed));
  }
  return sent;
}

/// All broadcasts of a round have the same weights, whatever the client's task, so one size is valid for all.
std::int64_t current_round::known_upload_bytes(const federation_settings& settings) {
  if (!settings.upload_size_known)
    return 0;
  const auto& weights = opened.in->weights;
  if (known_upload_.first != weights)
    known_upload_ = {weights, wire_bytes(weights.get(), settings.transfer_dtype)};
  return known_upload_.second;
}

void current_round::persist(archive& state) {
  state(info)(is_open)(wants_clients)(missing)(folded)(deadline)(dropped_out);
  if (!is_open)
    opened = {}; // no other client receives this broadcast
  state(opened.in)(opened.bytes)(opened.initial_payload_bytes);
  for (auto& [advice, bytes] : last_advice)
    state(advice)(bytes);
}

} // namespace mneme
