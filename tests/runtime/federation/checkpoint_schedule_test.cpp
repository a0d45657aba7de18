#include "runtime/federation/checkpoint_schedule.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("a checkpoint becomes due every n rounds and stays due until it is allowed") {
  checkpoint_schedule turn(checkpoint_section{.every = 2, .force = false});
  CHECK_FALSE(turn.is_due_after(1));
  turn.allow(false);
  CHECK_FALSE(turn.is_due_after(2));
  turn.allow(true);
  CHECK(turn.is_due_after(3));
  turn.began();
  CHECK(turn.continues_while_writing());
  turn.allow(true);
  CHECK_FALSE(turn.is_due_after(4));         // the previous one is being written
  CHECK_FALSE(turn.on_checkpoint_written()); // the run does not wait for it
  CHECK(turn.is_due_after(5));
  CHECK_FALSE(turn.is_due_after(7));
}

TEST_CASE("no checkpoint is due if checkpoints are disabled") {
  checkpoint_schedule turn(checkpoint_section{.every = 0, .force = true});
  CHECK_FALSE(turn.are_taken());
  for (std::int64_t rounds = 1; rounds < 9; ++rounds)
    CHECK_FALSE(turn.is_due_after(rounds));
}

TEST_CASE("a run waits until a forced checkpoint is on disk, whatever the throttle says") {
  checkpoint_schedule turn(checkpoint_section{.every = 1, .force = true});
  turn.allow(false);
  CHECK(turn.is_due_after(1));
  turn.began();
  CHECK_FALSE(turn.continues_while_writing());
  CHECK(turn.on_checkpoint_written());
}

TEST_CASE("a run that ends waits for its last checkpoint and for those being written") {
  checkpoint_schedule turn(checkpoint_section{.every = 1, .force = false});
  CHECK(turn.is_due_after(1));
  turn.began();
  CHECK(turn.begin_shutdown());
  CHECK_FALSE(turn.begin_shutdown());
  CHECK(turn.is_ending());
  turn.began();
  CHECK_FALSE(turn.continues_while_writing());
  CHECK_FALSE(turn.on_checkpoint_written());
  CHECK(turn.on_checkpoint_written());
}
