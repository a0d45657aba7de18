/// method_driver: federation without actors: a method, a few rows and an executor, driven in a loop.
#pragma once
#include "runtime/method/client_round_runner.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <functional>
namespace mneme::test {

inline model_ref model_named(const std::string& name, std::array<std::int64_t, 3> shape, std::int64_t classes) {
  for (const auto& entry : models())
    if (entry.name == name)
      return entry.make()->build(shape, classes).value();
  FAIL("no model is named " << name);
  return nullptr;
}

inline std::unique_ptr<strategy> strategy_named(const std::string& name) {
  for (const auto& entry : strategies())
    if (entry.name == name)
      return entry.make();
  FAIL("no strategy is named " << name);
  return nullptr;
}

/// Keys of [strategy] with their values. It is a type of its own, because a plain vector could also be constructed from
/// the two strings of one pair as an iterator range.
struct key_list {
  std::vector<std::pair<std::string, std::string>> pairs;
  key_list(std::initializer_list<std::pair<std::string, std::string>> given) : pairs(given) {}
};

/// Sets the keys of [strategy] of a method.
inline void give_keys(strategy& method, const std::vector<std::pair<std::string, std::string>>& keys) {
  key_table table;
  method.keys(table);
  for (const auto& [name, value] : keys) {
    INFO(name << " = " << value);
    const auto* const found = table.find(name);
    REQUIRE(found);
    if (found->chosen)
      found->chosen(value);
    else if (auto* const* whole = std::get_if<std::int64_t*>(&found->target))
      **whole = std::stoll(value);
    else if (auto* const* number = std::get_if<double*>(&found->target))
      **number = std::stod(value);
    else if (auto* const* flag = std::get_if<bool*>(&found->target))
      **flag = value == "true";
    else if (auto* const* text = std::get_if<std::string*>(&found->target))
      **text = value;
    else
      *std::get<std::filesystem::path*>(found->target) = value;
  }
}

/// Error of the method's check of a net, or "".
inline std::string setup_error(const strategy& method, const model_ref& net) {
  for (const auto& found : method.check({.net = net}))
    if (found.where == "model.name")
      return found.text;
  return {};
}

/// `rows` rows of `features` pixels computed from their index; row r has label r mod classes.
inline std::shared_ptr<const dataset> striped_rows(std::int64_t rows, std::int64_t features, std::int32_t classes) {
  auto made = std::make_shared<dataset>();
  made->images = (at::arange(rows * features, at::kLong).mul(37) % 251).to(at::kByte).view({rows, 1, 1, features});
  for (std::int64_t r = 0; r < rows; ++r)
    made->labels.push_back(static_cast<std::int32_t>(r % classes));
  made->transforms.resize(1);
  made->scale = {1.0f / 255.0f};
  made->shift = {-0.5f};
  return made;
}

inline sample_view view_of(std::shared_ptr<const dataset> source, std::vector<std::int64_t> rows) {
  return {.source = std::move(source), .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

/// Training rows that a server may read, listed by the test.
class listed_rows final : public central_rows {
public:
  using list = std::function<std::vector<std::int64_t>(std::uint32_t task)>;
  /// @param enrolled rows of enrolled clients; empty: of all clients
  explicit listed_rows(std::shared_ptr<const dataset> source, list every, list enrolled = {})
      : source_(std::move(source)), every_(std::move(every)), enrolled_(enrolled ? std::move(enrolled) : every_) {}
  [[nodiscard]] sample_view of_task(task_id task) const override { return view_of(source_, every_(task.value)); }
  [[nodiscard]] sample_view of_enrolled(task_id task) const override { return view_of(source_, enrolled_(task.value)); }
  [[nodiscard]] sample_view of_public(task_id task) const override { return of_task(task); }

private:
  std::shared_ptr<const dataset> source_;
  list every_, enrolled_;
};

/// Setup of a method for a run of `net` on rows of `features` pixels, with one client and random weights.
inline method_setup setup_of_run(const model_ref& net, std::int64_t features, std::int64_t tasks,
                                 std::uint64_t seed = 5) {
  return {.net = net,
          .initial = weights_only(initial_weights(*net, seed)),
          .tasks = tasks,
          .classes = net->classes(),
          .shape = {1, 1, features},
          .scale = {1.0f / 255.0f},
          .shift = {-0.5f},
          .clients = 1,
          .seed = seed};
}

/// First round of a task if every task has `classes` new classes.
inline round_info class_task(std::uint32_t task, std::int64_t classes) {
  return {.task = {task},
          .seen_classes = {0, (task + 1) * classes},
          .current_classes = {task * classes, (task + 1) * classes}};
}

/// Runs the jobs of a plan one by one.
inline outcomes run_plan(executor& device, plan wanted) {
  outcomes results;
  for (auto& request : wanted) {
    const std::vector<job> single{{.id = {}, .request = std::move(request)}};
    results.push_back(device.run(single).front());
  }
  return results;
}

/// Runs a client's round to its end.
inline client_result run_round(const strategy& method, executor& device, assignment assigned) {
  generated_row_store made({.scale = assigned.samples.source->scale, .shift = assigned.samples.source->shift});
  client_round_runner run(method, std::move(assigned), &made);
  auto step = run.start();
  while (auto* wanted = std::get_if<plan>(&step))
    step = run.resume(run_plan(device, std::move(*wanted)));
  if (auto* failure = std::get_if<round_failure>(&step))
    FAIL("the round failed: " << failure->reason);
  return std::get<client_result>(std::move(step));
}

/// Runs a step of the server half to its end.
template <class T>
T run_step(task<T> step, job_channel& channel, executor& device) {
  step.start();
  while (!step.done())
    channel.answer(run_plan(device, channel.take_plan()));
  return step.take();
}

} // namespace mneme::test
