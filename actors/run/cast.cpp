#include "actors/run/cast.hpp"
#include "actors/compute/shard.hpp"
#include "actors/compute/worker.hpp"
#include "actors/run/checkpoint_writer.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/server/server.hpp"
#include <caf/scoped_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <thread>
namespace mneme {
namespace {

/// Polls for a signal, because a signal handler may not send messages.
class interrupt_watch {
public:
  interrupt_watch(const std::atomic<int>* interrupts, scheduler_actor scheduler)
      : thread_([interrupts, scheduler](const std::stop_token& stop) {
          while (interrupts && !stop.stop_requested()) {
            if (interrupts->load() > 0)
              return caf::anon_send(scheduler, stop_run{});
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}

private:
  std::jthread thread_;
};

/// All actors of a run, and their end.
class cast {
public:
  cast(caf::actor_system& system, const world_ref& world, cast_setup setup) {
    if (setup.checkpoints)
      setup.recorder.writer = writer_ =
          system.spawn<checkpoint_writer_actor::stateful_impl<checkpoint_writer_state>, caf::detached>(
              setup.checkpoints);
    recorder_ = system.spawn<recorder_actor::stateful_impl<recorder_state>>(world, std::move(setup.recorder));
    for (std::int64_t i = 0; i < world->workers; ++i)
      workers_.push_back(system.spawn<worker_actor::stateful_impl<worker_state>, caf::detached>(world));
    pool_ = system.spawn<pool_actor::stateful_impl<pool_state>>(world, workers_);
    server_ = system.spawn<server_actor::stateful_impl<server_state>>(world, pool_, recorder_);
    auto peers = [this, &system, world](const scheduler_actor& scheduler) {
      const auto lines = std::make_shared<batch_lines>(world->shards);
      using shard = shard_actor::stateful_impl<shard_state>;
      for (std::uint32_t s = 0; s < world->shards; ++s) {
        const shard_id which{s};
        shards_.push_back(world->shards_compute && s > 0
                              ? system.spawn<shard, caf::detached>(which, world, pool_, scheduler, lines)
                              : system.spawn<shard>(which, world, pool_, scheduler, lines));
      }
      return scheduler_peers{.server = server_, .recorder = recorder_, .shards = shards_};
    };
    scheduler_ = system.spawn<scheduler_actor::stateful_impl<scheduler_state>>(
        world, std::function<scheduler_peers(scheduler_actor)>(peers), std::move(setup.past));
  }
  /// Everybody quits, the scheduler first: nobody is left to take another's end for a failure.
  ~cast() {
    end(scheduler_);
    for (const auto& shard : shards_)
      end(shard);
    end(server_);
    end(pool_);
    for (const auto& worker : workers_)
      end(worker);
    end(recorder_);
    if (writer_)
      end(writer_);
  }
  [[nodiscard]] const scheduler_actor& scheduler() const { return scheduler_; }
  [[nodiscard]] const server_actor& server() const { return server_; }
  [[nodiscard]] const recorder_actor& recorder() const { return recorder_; }

private:
  template <class Handle>
  static void end(const Handle& who) {
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  }

  checkpoint_writer_actor writer_;
  recorder_actor recorder_;
  std::vector<worker_actor> workers_;
  pool_actor pool_;
  server_actor server_;
  std::vector<shard_actor> shards_; // written once, by the scheduler, when the run begins
  scheduler_actor scheduler_;
};

void fail(run_report& report, const std::string& why) {
  if (report.status != run_status::failed)
    report.error = why;
  report.status = run_status::failed;
}

run_report await_end(caf::scoped_actor& self, const cast& actors, const std::atomic<int>* interrupts) {
  run_report report;
  const interrupt_watch watch(interrupts, actors.scheduler());
  self->request(actors.scheduler(), caf::infinite, run_request{})
      .receive([&](run_report& ended) { report = std::move(ended); },
               [&](const caf::error& why) { fail(report, in_words(why)); });
  return report;
}

void save_predictor(caf::scoped_actor& self, const cast& actors, run_report& report) {
  learnt named;
  auto failed = [&](const caf::error& why) { fail(report, in_words(why)); };
  self->request(actors.server(), caf::infinite, save_model{})
      .receive([&](learnt& in) { named = std::move(in); }, failed);
  if (named.model)
    self->request(actors.recorder(), caf::infinite, named).receive([] {}, failed);
}

void measure_clients(caf::scoped_actor& self, const cast& actors, run_report& report) {
  self->request(actors.server(), caf::infinite, measure_fairness{})
      .receive([&](fairness& in) { report.client_accuracy_deciles = std::move(in.deciles); },
               [&](const caf::error& why) { fail(report, in_words(why)); });
}

} // namespace

run_summary play(caf::actor_system& system, const world_ref& world, cast_setup setup) {
  caf::scoped_actor self(system);
  const auto* const interrupts = setup.interrupts;
  const cast actors(system, world, std::move(setup));
  auto report = await_end(self, actors, interrupts);
  if (report.status != run_status::failed)
    save_predictor(self, actors, report);
  if (report.status == run_status::done && world->what.evaluation.fairness)
    measure_clients(self, actors, report);
  run_summary summary;
  self->request(actors.recorder(), caf::infinite, finish_run{report})
      .receive([&](run_summary& written) { summary = std::move(written); },
               [&](const caf::error& why) {
                 fail(report, in_words(why));
                 summary.status = "failed";
                 summary.error = report.error;
                 summary.run_digest = shown(report.digest);
               });
  return summary;
}

} // namespace mneme
