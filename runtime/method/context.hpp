/// context: requests of jobs by a client's round or a server step.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/base/task.hpp"
#include "runtime/data/generated_row_store.hpp"
#include "runtime/method/jobs.hpp"
#include <coroutine>
#include <iterator>
#include <tuple>
#include <utility>
namespace mneme {

/// The jobs of one stage. They run in parallel, and their results return together.
using plan = std::vector<work>;

/// Connects a coroutine with the code that runs it. The channel carries requested jobs in one direction and their
/// results in the other, one stage at a time.
class job_channel {
public:
  // called by the coroutine
  void ask(plan jobs, std::coroutine_handle<> caller) { plan_ = std::move(jobs), waiting_ = caller; }
  [[nodiscard]] outcomes collect() { return std::move(outcomes_); }
  [[nodiscard]] assignment_id owner() const noexcept { return owner_; }
  [[nodiscard]] std::uint32_t stage() const noexcept { return stage_; }

  // called by the code that runs the coroutine
  explicit job_channel(assignment_id owner = {}) : owner_(owner) {}
  [[nodiscard]] plan take_plan() { return std::move(plan_); }
  /// Passes the results to the coroutine and runs it to its next stage or its end.
  void answer(outcomes results) {
    outcomes_ = std::move(results);
    std::exchange(waiting_, {}).resume();
    ++stage_;
  }

private:
  plan plan_;
  outcomes outcomes_;
  std::coroutine_handle<> waiting_;
  assignment_id owner_;
  std::uint32_t stage_ = 0;
};

/// Jobs that are described but not requested yet. Store them in a variable, then await it:
///     auto training = ctx.train({.net = net, .start = in.weights, ...});
///     auto trained = co_await training;   // throws job_error
template <class... Outputs>
class [[nodiscard]] pending {
public:
  pending(job_channel& channel, plan jobs) : channel_(channel), plan_(std::move(jobs)) {}

  auto operator co_await() & noexcept {
    struct awaiter {
      pending& self;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> caller) { self.channel_.ask(std::move(self.plan_), caller); }
      auto await_resume() { return self.unpack(self.channel_.collect(), std::index_sequence_for<Outputs...>{}); }
    };
    return awaiter{*this};
  }
  template <class Unnamed = pending>
  auto operator co_await() && noexcept {
    refuse_unnamed<Unnamed>();
    return static_cast<pending&>(*this).operator co_await();
  }

  /// Combines jobs into one stage: `auto both = first & second; auto [a, b] = co_await both;`
  template <class... Others>
  [[nodiscard]] friend pending<Outputs..., Others...> operator&(pending& first, pending<Others...>& second) {
    plan both = std::move(first.plan_);
    auto others = second.take();
    std::move(others.begin(), others.end(), std::back_inserter(both));
    return {first.channel_, std::move(both)};
  }
  [[nodiscard]] plan take() { return std::move(plan_); }

private:
  template <class Output>
  Output output_of(job_outcome& outcome, std::uint32_t step) {
    if (auto* reason = std::get_if<std::string>(&outcome))
      throw job_error({channel_.owner(), channel_.stage(), step}, *reason);
    return std::get<Output>(std::move(std::get<work_output>(outcome)));
  }
  template <std::size_t... I>
  auto unpack(outcomes results, std::index_sequence<I...>) {
    if constexpr (sizeof...(I) == 1)
      return (output_of<Outputs>(results.at(I), I), ...);
    else
      return std::tuple<Outputs...>{output_of<Outputs>(results.at(I), I)...};
  }

  job_channel& channel_;
  plan plan_;
};

/// Any number of jobs with the same result type. Results are in the order of the jobs.
template <class Output>
class [[nodiscard]] pending_list {
public:
  pending_list(job_channel& channel, plan jobs) : channel_(channel), plan_(std::move(jobs)) {}

  auto operator co_await() & noexcept {
    struct awaiter {
      pending_list& self;
      bool await_ready() const noexcept { return self.plan_.empty(); }
      void await_suspend(std::coroutine_handle<> caller) { self.channel_.ask(std::move(self.plan_), caller); }
      std::vector<Output> await_resume() { return self.unpack(self.channel_.collect()); }
    };
    return awaiter{*this};
  }
  template <class Unnamed = pending_list>
  auto operator co_await() && noexcept {
    refuse_unnamed<Unnamed>();
    return static_cast<pending_list&>(*this).operator co_await();
  }

private:
  std::vector<Output> unpack(outcomes results) {
    std::vector<Output> unpacked;
    for (std::uint32_t step = 0; step < results.size(); ++step) {
      if (auto* reason = std::get_if<std::string>(&results[step]))
        throw job_error({channel_.owner(), channel_.stage(), step}, *reason);
      unpacked.push_back(std::get<Output>(std::move(std::get<work_output>(results[step]))));
    }
    return unpacked;
  }

  job_channel& channel_;
  plan plan_;
};

/// Jobs of arbitrary kinds, for callers such as Python that choose them at run time. co_await returns all results. The
/// result of a failed job is its error text.
class [[nodiscard]] pending_stage {
public:
  pending_stage(job_channel& channel, plan jobs) : channel_(channel), jobs_(std::move(jobs)) {}

  auto operator co_await() & noexcept {
    struct awaiter {
      pending_stage& self;
      bool await_ready() const noexcept { return self.jobs_.empty(); }
      void await_suspend(std::coroutine_handle<> caller) { self.channel_.ask(std::move(self.jobs_), caller); }
      outcomes await_resume() { return self.channel_.collect(); }
    };
    return awaiter{*this};
  }
  template <class Unnamed = pending_stage>
  auto operator co_await() && noexcept {
    refuse_unnamed<Unnamed>();
    return static_cast<pending_stage&>(*this).operator co_await();
  }

private:
  job_channel& channel_;
  plan jobs_;
};

/// Describes jobs that a client or the server may request. A job runs only when its result is awaited.
class context {
public:
  /// @param store shares created rows between jobs; if null, rows_of() must not be called
  explicit context(job_channel& channel, generated_row_store* store = nullptr) : channel_(channel), store_(store) {}
  pending<train_output> train(train_job&& job) { return ask<train_output>(std::move(job)); }
  pending<extract_output> extract(extract_job&& job) { return ask<extract_output>(std::move(job)); }
  pending<statistics_output> statistics(statistics_job&& job) { return ask<statistics_output>(std::move(job)); }
  pending<evaluate_output> evaluate(evaluate_job&& job) { return ask<evaluate_output>(std::move(job)); }
  pending<compute_output> compute(compute_job&& job) { return ask<compute_output>(std::move(job)); }
  /// Runs a program. Throws std::invalid_argument if the program does not declare its result.
  pending<program_output> run(program_job&& job) {
    check_declared(job);
    return ask<program_output>(std::move(job));
  }
  /// Runs several programs in parallel; calls of one kind may be stacked into a batch.
  pending_list<program_output> run_each(std::vector<program_job> programs) {
    plan jobs;
    for (auto& program : programs) {
      check_declared(program);
      jobs.push_back(std::move(program));
    }
    return {channel_, std::move(jobs)};
  }
  /// Runs all jobs of a stage. @pre every program among them has passed check_declared()
  pending_stage run_all(plan jobs) { return {channel_, std::move(jobs)}; }
  /// Assignment and stage of the next job, for error messages.
  [[nodiscard]] job_id next_job() const noexcept { return {channel_.owner(), channel_.stage(), 0}; }
  /// Returns a view through which jobs read the given images and labels, such as received, remembered or generated ones
  /// (generated_row_store.hpp).
  [[nodiscard]] sample_view rows_of(const at::Tensor& images, const at::Tensor& labels) const {
    MNEME_CHECK(store_ != nullptr);
    return every_row_of(store_->rows_of(images, labels));
  }

private:
  template <class Output, class Job>
  pending<Output> ask(Job&& job) {
    plan single;
    single.emplace_back(std::in_place_type<Job>, std::move(job)); // a job is large, so it is moved only once
    return {channel_, std::move(single)};
  }
  job_channel& channel_;
  generated_row_store* store_;
};

} // namespace mneme
