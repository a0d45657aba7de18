/// party_host: behavior common to all parties.
#pragma once
#include "actors/compute/enqueue_and_wake.hpp"
#include "actors/compute/step_runner.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/party_steps.hpp"
namespace mneme {

/// Arguments with which a party is spawned.
struct party_setup {
  run_context_ref run{};
  std::shared_ptr<batch_queues> queues{};
  std::vector<worker_actor> workers{};
  recorder_actor recorder{};
};

/// Handles the requests that all parties receive. The actor adds the steps of its half.
/// @tparam Receive member function of the half that receives a delivery
template <class Half, auto Receive>
class party_host {
public:
  template <class Self>
  party_host(Self* self, const party_setup& setup, party_id who, std::unique_ptr<Half> half)
      : steps_(*setup.run, row_of(who).name,
               {.put =
                    [self, who, queues = setup.queues, workers = setup.workers](std::vector<ready_batch> batches) {
                      enqueue_and_wake(self, *queues, workers, queues->queue_of(who), std::move(batches));
                    },
                .warn = [self, recorder = setup.recorder](
                            std::string text) { self->send(recorder, run_warning{std::move(text)}); }}),
        half_(std::move(half)) {
    MNEME_CHECK(half_ != nullptr); // a party is spawned only if the method has its half
  }

  [[nodiscard]] Half& half() const { return *half_; }
  [[nodiscard]] step_runner& steps() { return steps_; }
  [[nodiscard]] const step_runner& steps() const { return steps_; }

  caf::result<void> handle(const deliveries& in) {
    return tried("receiving uploads", [&]() -> caf::result<void> {
      for (const auto& sent : in.uploads)
        (half_.get()->*Receive)(sent);
      return {};
    });
  }
  caf::result<saved_state> save(save_state& in) {
    return tried("saving state", [&]() -> caf::result<saved_state> {
      half_->persist(in.so_far.section(section()));
      return saved_state{.state = std::move(in.so_far)};
    });
  }
  caf::result<restored_state> restore(restore_state& in) {
    return tried("restoring a checkpoint", [&]() -> caf::result<restored_state> {
      const auto damage = archive_error_of([&] { half_->persist(in.sections.section(section())); });
      if (!damage.empty())
        return steps_.step_error("restoring a checkpoint", "it " + damage);
      return restored_state{.sections = std::move(in.sections)};
    });
  }
  /// Runs `act`. If it throws, replies with an error. @param step name of the step in the error
  template <class Act>
  auto tried(const char* step, Act act) -> decltype(act()) {
    std::optional<decltype(act())> answer;
    const auto reason = exception_message_of([&] { answer.emplace(act()); });
    if (reason.empty())
      return std::move(*answer);
    return steps_.step_error(step, reason);
  }

private:
  [[nodiscard]] std::string section() const { return std::string(steps_.owner()) + " half"; }

  step_runner steps_;
  std::unique_ptr<Half> half_;
};

} // namespace mneme
