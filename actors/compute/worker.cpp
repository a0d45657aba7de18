#include "actors/compute/worker.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
#include <limits>
#include <new>
namespace mneme {
namespace {

constexpr double huge = std::numeric_limits<double>::infinity();
/// Of the weights that a bundle of batches computes: the first are folded while the next are computed.
constexpr std::int64_t bundle_bytes_max = std::int64_t{4} << 20;

/// About how many multiplications a batch is; `huge` where that is not known beforehand.
double multiplications(const batch& what) {
  double sum = 0.0;
  for (const auto& one : what.jobs) {
    const auto* training = std::get_if<train_job>(&one.what);
    if (!training)
      return huge;
    sum += static_cast<double>(rows_of(one.what)) * static_cast<double>(training->net->size());
  }
  return sum;
}

outcomes all_failed(std::size_t jobs, const std::string& why) { return outcomes(jobs, job_outcome{why}); }

} // namespace

batch_outcomes outcomes_of(const batch& what, executor& on, std::atomic<std::int64_t>& busy_ns) {
  const recorder_stopwatch busy;
  batch_outcomes answer;
  try {
    answer.all = on.run(what.jobs);
  } catch (const std::bad_alloc&) {
    answer.all = all_failed(what.jobs.size(), "out of memory; a smaller worker.models_max needs less");
  } catch (const std::exception& e) {
    answer.all = all_failed(what.jobs.size(), e.what());
  } catch (...) {
    answer.all = all_failed(what.jobs.size(), "threw something that is not a std::exception");
  }
  busy_ns += static_cast<std::int64_t>(1e9 * busy.seconds());
  return answer;
}

worker_state::worker_state(worker_actor::pointer, world_ref world)
    : world_(std::move(world)), executor_(make_executor(world_->device, world_->features)) {}

worker_actor::behavior_type worker_state::make_behavior() {
  return {[this](const bundle& in) {
    bundle_outcomes answer;
    for (const auto& what : in.all)
      answer.all.push_back(outcomes_of(what, *executor_, *world_->busy_ns));
    return answer;
  }};
}

pool_state::pool_state(pool_actor::pointer self, world_ref world, std::vector<worker_actor> workers)
    : self_(self), world_(std::move(world)) {
  if (world_->device == "cpu")
    executor_ = make_executor(world_->device, world_->features);
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
    const auto size = multiplications(what);
    const auto own_max =
        crew_.size() == 1 || world_->shards_compute ? multiplications_of_short : multiplications_of_trifle;
    if (executor_ && size < own_max)
      return outcomes_of(what, *executor_, *world_->busy_ns);
    auto answer = self_->make_response_promise<batch_outcomes>();
    const auto turn = what.turn;
    waiting_.emplace(turn, waiting_batch{.what = std::move(what), .answer = answer, .multiplications = size});
    feed();
    return answer;
  }};
}

/// A worker at work has its next batches at hand, so that it need not wait for this actor in between; but long batches
/// that may be the last ones go to whoever is idle first.
void pool_state::feed() {
  while (!waiting_.empty()) {
    auto& next = least_given();
    const bool is_short = waiting_.begin()->second.multiplications < multiplications_of_short;
    const bool ahead = is_short || waiting_.size() > crew_.size();
    if (next.given >= (ahead ? 2U : 1U))
      return;
    give(next);
  }
}

pool_state::crew_member& pool_state::least_given() {
  return *std::min_element(crew_.begin(), crew_.end(),
                           [](const crew_member& a, const crew_member& b) { return a.given < b.given; });
}

/// The first batch that waits, and those after it that are short too: no more than a small part of what is left, so
/// that all workers end together.
std::vector<pool_state::waiting_batch> pool_state::next_ones() {
  const auto count_max = 1 + waiting_.size() / (4 * crew_.size());
  std::vector<waiting_batch> chosen;
  double sum = 0.0;
  std::int64_t bytes = 0;
  while (!waiting_.empty() && chosen.size() < count_max) {
    auto& next = waiting_.begin()->second;
    sum += next.multiplications;
    for (const auto& one : next.what.jobs)
      bytes += outcome_bytes(one.what);
    if (!chosen.empty() && (sum > multiplications_of_short || bytes > bundle_bytes_max))
      break;
    chosen.push_back(std::move(next));
    waiting_.erase(waiting_.begin());
  }
  return chosen;
}

void pool_state::give(crew_member& to) {
  bundle all;
  std::vector<promise> answers;
  for (auto& one : next_ones()) {
    all.all.push_back(std::move(one.what));
    answers.push_back(std::move(one.answer));
  }
  ++to.given;
  self_->request(to.who, caf::infinite, std::move(all))
      .then(
          [this, &to, answers](bundle_outcomes& done) mutable {
            --to.given;
            feed();
            for (std::size_t i = 0; i < answers.size(); ++i)
              answers[i].deliver(std::move(done.all.at(i)));
          },
          [answers](const caf::error& why) mutable {
            for (auto& answer : answers)
              answer.deliver(why);
          });
}

} // namespace mneme
