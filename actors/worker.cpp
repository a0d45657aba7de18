#include "actors/worker.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
#include <new>
namespace mneme {
namespace {

/// Whether a batch is a matter of milliseconds: then a worker's waiting for the next one would cost more than an
/// uneven end.
bool is_short(const batch& what) {
  constexpr double multiplications_max = 1e8;
  double sum = 0.0;
  for (const auto& one : what.jobs) {
    const auto* training = std::get_if<train_job>(&one.what);
    if (!training)
      return false;
    sum += static_cast<double>(rows_of(one.what)) * static_cast<double>(training->net->size());
  }
  return sum < multiplications_max;
}

outcomes all_failed(std::size_t jobs, const std::string& why) { return outcomes(jobs, job_outcome{why}); }

} // namespace

worker_state::worker_state(worker_actor::pointer self, const world_ref& world, recorder_actor recorder)
    : self_(self), recorder_(std::move(recorder)), executor_(make_executor(world->device, world->features)) {}

worker_actor::behavior_type worker_state::make_behavior() {
  return {[this](const batch& what) { return run(what); }};
}

/// The boundary for LibTorch's exceptions: beyond it a failure is a text.
batch_outcomes worker_state::run(const batch& what) {
  const recorder_stopwatch busy;
  batch_outcomes answer;
  try {
    answer.all = executor_->run(what.jobs);
  } catch (const std::bad_alloc&) {
    answer.all = all_failed(what.jobs.size(), "out of memory; a smaller worker.models_max needs less");
  } catch (const std::exception& e) {
    answer.all = all_failed(what.jobs.size(), e.what());
  } catch (...) {
    answer.all = all_failed(what.jobs.size(), "threw something that is not a std::exception");
  }
  self_->send(recorder_, worker_usage{busy.seconds()});
  return answer;
}

pool_state::pool_state(pool_actor::pointer self, std::vector<worker_actor> workers) : self_(self) {
  for (auto& worker : workers) {
    self_->monitor(worker);
    crew_.push_back({.who = std::move(worker)});
  }
  self_->set_down_handler([this](const caf::down_msg& down) {
    self_->quit(caf::make_error(run_errc::actor_lost, "a worker ended: " + caf::to_string(down.reason)));
  });
}

pool_actor::behavior_type pool_state::make_behavior() {
  return {[this](batch& what) -> caf::result<batch_outcomes> {
    auto answer = self_->make_response_promise<batch_outcomes>();
    const bool small = is_short(what);
    waiting_.push_back({.what = std::move(what), .answer = answer, .is_short = small});
    feed();
    return answer;
  }};
}

/// A worker at work has its next batch at hand, so that it need not wait for this actor in between; but long batches
/// that may be the last ones go to whoever is idle first.
void pool_state::feed() {
  while (!waiting_.empty()) {
    auto& next = least_given();
    const bool ahead = waiting_.front().is_short || waiting_.size() > crew_.size();
    if (next.given >= (ahead ? 2U : 1U))
      return;
    give(next);
  }
}

pool_state::crew_member& pool_state::least_given() {
  return *std::min_element(crew_.begin(), crew_.end(),
                           [](const crew_member& a, const crew_member& b) { return a.given < b.given; });
}

void pool_state::give(crew_member& to) {
  auto what = std::move(waiting_.front().what);
  auto answer = waiting_.front().answer;
  waiting_.pop_front();
  ++to.given;
  self_->request(to.who, caf::infinite, std::move(what))
      .then(
          [this, &to, answer](batch_outcomes& done) mutable {
            --to.given;
            feed();
            answer.deliver(std::move(done));
          },
          [answer](caf::error& why) mutable { answer.deliver(std::move(why)); });
}

} // namespace mneme
