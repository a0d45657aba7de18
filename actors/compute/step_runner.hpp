/// step_runner: runs the steps of a party's half of the method, and the jobs that they request.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include <caf/typed_response_promise.hpp>
#include <functional>
#include <optional>
namespace mneme {

class step_runner {
public:
  /// Operations that the actor provides.
  struct hooks {
    std::function<void(std::vector<ready_batch>)> put{}; ///< Appends batches to the actor's queue.
    std::function<void(std::string)> warn{};             ///< Prints a warning.
  };
  /// @param owner name of the half in errors, such as "server"
  /// @param run must outlive this object
  step_runner(const run_context& run, const char* owner, hooks with)
      : run_(run), owner_(owner), hooks_(std::move(with)) {}

  /// Runs a step to its end. @param rows training rows that the step may request; may be null
  /// @param begin creates the step's coroutine
  /// @param value_of converts the coroutine's value into the reply, or rethrows its exception
  template <class Answer, class Begin, class ValueOf>
  caf::typed_response_promise<Answer> run(caf::typed_response_promise<Answer> answer, const round_info& where,
                                          const central_rows* rows, Begin begin, ValueOf value_of) {
    using step_task = decltype(begin(std::declval<server_context&>(), where));
    auto step = std::make_shared<running_step<step_task>>(rows, run_.generated_rows.get());
    step->where = where;
    step->ended = [answer, value_of](step_task& over) mutable { answer.deliver(value_of(over)); };
    step->failed = [answer](caf::error reason) mutable { answer.deliver(std::move(reason)); };
    drive<step_task>(step, [step = step.get(), begin] {
      step->work.emplace(begin(step->context, step->where));
      step->work->start();
    });
    return answer;
  }
  /// Runs the jobs of a plan and passes all outcomes to `then`, in the plan's order.
  void run_all(plan jobs, std::function<void(outcomes)> then);
  /// Handles the outcomes of a batch that a worker has run.
  void handle(batch_done& in);
  /// Name of the half in errors.
  [[nodiscard]] const char* owner() const noexcept { return owner_; }
  /// True if the run was interrupted during a step, so that the half's state is inconsistent.
  [[nodiscard]] bool is_interrupted() const noexcept { return interrupted_; }
  [[nodiscard]] caf::error step_error(const std::string& step, const std::string& text) const {
    return caf::make_error(run_errc::server_failed, std::string(owner_) + ", " + step + ": " + text);
  }

private:
  /// Running step: its coroutine and the receiver of its value.
  template <class Task>
  struct running_step {
    job_channel channel{};
    server_context context;
    running_step(const central_rows* rows, generated_row_store* store) : context(channel, rows, store) {}
    round_info where{};
    std::optional<Task> work{};
    std::function<void(Task&)> ended{}; // receives the finished coroutine with its value or exception
    std::function<void(caf::error)> failed{};
  };
  /// Plan whose jobs are running.
  struct running_plan {
    outcomes known{};
    std::size_t missing = 0;
    std::function<void(outcomes)> then{};
  };

  template <class Task>
  void drive(std::shared_ptr<running_step<Task>> step, const std::function<void()>& advance) {
    const auto failure = catch_step_failure([&] {
      advance();
      for (auto& text : step->context.take_warnings())
        hooks_.warn(std::move(text));
      if (step->work->done())
        return step->ended(*step->work);
      run_all(step->channel.take_plan(), [this, step](outcomes results) {
        if (mneme::is_interrupted(results)) {
          interrupted_ = true;
          return step->failed(caf::make_error(run_errc::interrupted, std::string(interrupted_text)));
        }
        drive<Task>(step, [step = step.get(), &results] { step->channel.answer(std::move(results)); });
      });
    });
    if (failure)
      step->failed(step_error(step_at(step->where, failure->job), failure->text));
  }
  /// Describes a step for error messages: its round, counted from 1, and the job that failed, if any.
  [[nodiscard]] std::string step_at(const round_info& info, const std::optional<job_id>& failed) const;
  [[nodiscard]] std::vector<composition> compositions_of(const plan& jobs, std::uint64_t number) const;
  [[nodiscard]] std::int64_t width_of(const work& request) const;

  const run_context& run_;
  const char* owner_;
  hooks hooks_;
  std::map<std::uint64_t, running_plan> plans_;
  std::uint64_t next_plan_ = 0;
  bool interrupted_ = false;
};

} // namespace mneme
