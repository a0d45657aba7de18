#include "tools/cli/forked_tasks.hpp"
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <unistd.h>
using namespace mneme;

namespace {

std::map<std::size_t, task_exit> ends_of(forked_tasks& tasks) {
  std::map<std::size_t, task_exit> ends;
  while (tasks.running() > 0)
    if (const auto ended = tasks.next_end(std::chrono::seconds(10)))
      ends[ended->task] = *ended;
  return ends;
}

} // namespace

TEST_CASE("a crashing task does not affect others, and its end is reported") {
  const std::string shared = "what the parent has loaded";
  forked_tasks tasks;
  tasks.start(0, [&] { return shared.size() == 26 ? 0 : 1; });
  tasks.start(1, [] { return ::kill(::getpid(), SIGKILL); });
  tasks.start(2, [] {
    std::fprintf(stderr, "error: no such file\n");
    std::printf("which nobody reads\n");
    return 2;
  });
  tasks.start(3, []() -> int { throw std::runtime_error("out of paper"); });
  const auto ends = ends_of(tasks);
  CHECK(ends.at(0).code == 0);
  CHECK(ends.at(1).signal == SIGKILL);
  CHECK(ends.at(2).code == 2);
  CHECK(ends.at(2).errors == "error: no such file\n");
  CHECK(ends.at(3).code == 1);
  CHECK(ends.at(3).errors == "error: out of paper\n");
}

TEST_CASE("tasks can be terminated, and are killed with their owner") {
  int ids[2];
  REQUIRE(::pipe(ids) == 0);
  const auto waits = [&] {         // prints its process id when it is ready
    std::signal(SIGTERM, SIG_DFL); // replaces Catch2's handler
    const auto mine = ::getpid();
    return ::write(ids[1], &mine, sizeof mine) > 0 ? ::pause() : 1;
  };
  pid_t waiting = 0;
  {
    forked_tasks tasks;
    tasks.start(0, waits);
    REQUIRE(::read(ids[0], &waiting, sizeof waiting) == sizeof waiting);
    CHECK_FALSE(tasks.next_end(std::chrono::milliseconds(0)));
    tasks.terminate();
    CHECK(ends_of(tasks).at(0).signal == SIGTERM);
    tasks.start(1, waits);
    REQUIRE(::read(ids[0], &waiting, sizeof waiting) == sizeof waiting);
    CHECK(::kill(waiting, 0) == 0);
  }
  CHECK(::kill(waiting, 0) == -1);
  ::close(ids[0]);
  ::close(ids[1]);
}
