#include "runtime/base/task.hpp"
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
using namespace mneme;

namespace {

/// Suspends a coroutine until its owner resumes it.
struct gate {
  std::coroutine_handle<> stopped{};
  void open() { std::exchange(stopped, {}).resume(); }
  auto operator co_await() & noexcept {
    struct awaiter {
      gate& self;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> caller) noexcept { self.stopped = caller; }
      void await_resume() const noexcept {}
    };
    return awaiter{*this};
  }
};

using lines = std::vector<std::string>;

task<void> noted(lines& to, std::string text) {
  to.push_back(std::move(text));
  co_return;
}
task<void> stopping(lines& to, gate& at) {
  to.push_back("before");
  co_await at;
  to.push_back("after");
}
task<void> failing() {
  throw std::runtime_error("it fails");
  co_return;
}
task<int> answer() { co_return 42; }

task<int> around(lines& to, gate& at) {
  auto first = stopping(to, at);
  co_await first;
  auto second = answer();
  auto value = co_await second;
  auto third = noted(to, "answered");
  co_await third;
  co_return value;
}
task<void> catching(lines& to) {
  auto inner = failing();
  try {
    co_await inner;
  } catch (const std::runtime_error& e) {
    to.push_back(e.what());
  }
}
/// Holds `token` during its lifetime.
task<void> holding(std::shared_ptr<int> token, gate& at) {
  auto own = std::move(token);
  co_await at;
  *own += 1;
}
task<void> awaiting(task<void>& inner) {
  co_await inner;
  co_return;
}

} // namespace

TEST_CASE("a task without a value runs when started and reports its end") {
  lines seen;
  auto step = noted(seen, "it ran");
  CHECK(seen.empty());
  step.start();
  CHECK(step.done());
  step.take();
  CHECK(seen == lines{"it ran"});
}

TEST_CASE("tasks with and without a value await each other and continue where they stopped") {
  lines seen;
  gate at;
  auto whole = around(seen, at);
  whole.start();
  CHECK_FALSE(whole.done());
  CHECK(seen == lines{"before"});
  at.open();
  REQUIRE(whole.done());
  CHECK(whole.take() == 42);
  CHECK(seen == lines{"before", "after", "answered"});
}

TEST_CASE("an exception of a task without a value reaches its awaiter") {
  auto alone = failing();
  alone.start();
  CHECK(alone.done());
  CHECK_THROWS_AS(alone.take(), std::runtime_error);
  lines seen;
  auto outer = catching(seen);
  outer.start();
  outer.take();
  CHECK(seen == lines{"it fails"});
}

TEST_CASE("destroying a suspended task without a value destroys its locals") {
  gate at;
  const auto token = std::make_shared<int>(0);
  {
    auto inner = holding(token, at);
    auto outer = awaiting(inner);
    outer.start();
    CHECK(token.use_count() == 2);
  }
  CHECK(token.use_count() == 1);
  CHECK(*token == 0);
  gate other;
  auto moved_from = holding(token, other);
  auto moved_to = std::move(moved_from);
  moved_to.start();
  other.open();
  CHECK(moved_to.done());
  CHECK(*token == 1);
}
