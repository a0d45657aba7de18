#include "actors/compute/run_batch.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "runtime/base/exception_message.hpp"
#include <limits>
namespace mneme {

outcomes run_batch(const std::vector<job>& jobs, executor& on, std::atomic<std::int64_t>& busy_ns,
                   slice_monitor* watch) {
  const recorder_stopwatch busy;
  outcomes done;
  const auto reason = exception_message_of([&] { done = on.run(jobs, watch); });
  if (done.size() != jobs.size())
    done.assign(jobs.size(), job_outcome{reason});
  busy_ns += static_cast<std::int64_t>(1e9 * busy.seconds());
  return done;
}

double multiplications_of(const work& job) {
  const auto rows = static_cast<double>(rows_of(job));
  if (const auto* training = std::get_if<train_job>(&job))
    return rows * static_cast<double>(training->net->size());
  if (const auto* pass = std::get_if<evaluate_job>(&job); pass && !pass->learned.readout.defined())
    return rows * static_cast<double>(pass->learned.net->size());
  return std::numeric_limits<double>::infinity();
}

} // namespace mneme
