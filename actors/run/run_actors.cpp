#include "actors/run/run_actors.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/compute/sharing_worker.hpp"
#include "actors/parties/proxy.hpp"
#include "actors/parties/server.hpp"
#include "actors/run/checkpoint_writer.hpp"
#include "actors/scheduler/scheduler.hpp"
#include <caf/scoped_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
namespace mneme {
namespace {

/// Thread that polls for an interrupt, because a signal handler may not send messages. The destructor stops the thread.
class interrupt_watch {
public:
  interrupt_watch(const std::atomic<int>* interrupts, scheduler_actor scheduler)
      : thread_([this, interrupts, scheduler](const std::stop_token& stop) {
          std::unique_lock hold(mutex_);
          while (interrupts && !stop.stop_requested()) {
            if (interrupts->load() > 0)
              return caf::anon_send(scheduler, stop_run{});
            stopped_.wait_for(hold, stop, std::chrono::milliseconds(20), [] { return false; });
          }
        }) {}

private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_; // last, so that it ends before the members it uses
};

std::vector<queue_length> lengths_of(const batch_queues& queues) {
  const auto waiting = queues.waiting();
  std::vector<queue_length> lengths{{.asked_by = "clients", .batches = static_cast<std::int64_t>(waiting.clients)}};
  for (std::size_t p = 0; p < parties.size(); ++p)
    lengths.push_back({.asked_by = parties[p].name, .batches = static_cast<std::int64_t>(waiting.parties[p])});
  return lengths;
}

/// Creates all actors of a run; the destructor ends them.
class run_actors {
public:
  run_actors(caf::actor_system& system, const run_context_ref& context, run_actors_setup setup) {
    if (setup.checkpoints)
      setup.recorder.writer = writer_ =
          system.spawn<checkpoint_writer_actor::stateful_impl<checkpoint_writer_state>, caf::detached>(
              setup.checkpoints);
    nodes_ = setup.nodes;
    const auto live = setup.recorder.live; // setup.recorder is moved below
    recorder_ = system.spawn<recorder_actor::stateful_impl<recorder_state>>(context, std::move(setup.recorder));
    const auto queues = spawn_workers(system, context);
    if (live)
      live->has_queues([queues] { return lengths_of(*queues); });
    const party_setup party{.run = context, .queues = queues, .workers = workers_, .recorder = recorder_};
    server_ = system.spawn<server_actor::stateful_impl<server_state>>(party);
    parties_ = {server_, {}};
    if (context->needs.has_proxy)
      parties_[index_of(party_id::proxy)] = system.spawn<party_actor::stateful_impl<proxy_state>>(party);
    auto peers = [this, &system, context, queues](const scheduler_actor& scheduler) {
      scheduler_links peers{.server = server_, .parties = parties_, .recorder = recorder_, .workers = workers_};
      for (std::int64_t s = 0; s < context->shards; ++s)
        peers.shards.emplace_back(workers_.at(queues->host_of(static_cast<std::size_t>(s)).value));
      report_sink_actor reported = scheduler;
      if (nodes_) {
        reported = peers.placement = placement_ =
            nodes_->start(system, context, {.scheduler = scheduler, .recorder = recorder_, .local = peers.shards});
        peers.shards.assign(peers.shards.size(), placement_);
      }
      for (const auto& worker : workers_)
        caf::anon_send(
            worker,
            worker_links{.scheduler = reported, .parties = parties_, .recorder = recorder_, .workers = workers_});
      return peers;
    };
    scheduler_ = system.spawn<scheduler_actor::stateful_impl<scheduler_state>>(
        context, std::function<scheduler_links(scheduler_actor)>(peers), std::move(setup.past));
  }
  /// Ends all actors, the scheduler first, so that it does not report the end of another actor as a failure.
  ~run_actors() {
    if (nodes_)
      nodes_->detach();
    end(scheduler_);
    if (nodes_)
      nodes_->end_replays(); // the thread of the replays sends to placement, so it must end first
    for (const auto& party : parties_)
      if (party)
        end(party);
    if (placement_)
      end(placement_);
    for (const auto& worker : workers_)
      end(worker);
    end(recorder_);
    if (writer_)
      end(writer_);
  }
  [[nodiscard]] const scheduler_actor& scheduler() const { return scheduler_; }
  [[nodiscard]] const server_actor& server() const { return server_; }
  [[nodiscard]] const std::vector<party_actor>& parties() const { return parties_; }
  [[nodiscard]] const recorder_actor& recorder() const { return recorder_; }

private:
  std::shared_ptr<batch_queues> spawn_workers(caf::actor_system& system, const run_context_ref& context) {
    const auto count = [](std::int64_t number) { return static_cast<std::size_t>(number); };
    const auto queues =
        std::make_shared<batch_queues>(count(context->shards), count(context->workers), count(context->hosts));
    for (std::uint32_t w = 0; w < context->workers; ++w) {
      const worker_id id{w};
      using worker = worker_actor::stateful_impl<worker_state>;
      workers_.push_back(has_own_thread(*context, id) ? system.spawn<worker, caf::detached>(id, context, queues)
                                                      : system.spawn<sharing_worker>(id, context, queues));
    }
    return queues;
  }
  template <class Handle>
  static void end(const Handle& who) {
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  }

  run_nodes_ref nodes_; // null: the run accepts no nodes
  checkpoint_writer_actor writer_;
  recorder_actor recorder_;
  std::vector<worker_actor> workers_;
  server_actor server_;
  std::vector<party_actor> parties_; // by party_id; null if the method has no such party
  placement_actor placement_;        // null: the run accepts no nodes
  scheduler_actor scheduler_;
};

void fail(run_report& report, const std::string& error) {
  if (report.status != run_status::failed)
    report.error = error;
  report.status = run_status::failed;
}

run_report await_end(caf::scoped_actor& self, const run_actors& actors, const std::atomic<int>* interrupts) {
  run_report report;
  const interrupt_watch watch(interrupts, actors.scheduler());
  self->request(actors.scheduler(), caf::infinite, run_request{})
      .receive([&](run_report& ended) { report = std::move(ended); },
               [&](const caf::error& error) { fail(report, error_message(error)); });
  return report;
}

void save_predictor(caf::scoped_actor& self, const run_actors& actors, run_report& report) {
  final_model named;
  auto failed = [&](const caf::error& error) { fail(report, error_message(error)); };
  self->request(actors.server(), caf::infinite, save_model{})
      .receive([&](final_model& in) { named = std::move(in); }, failed);
  for (const auto& party : actors.parties())
    if (party && party != actors.server())
      self->request(party, caf::infinite, save_model{})
          .receive([&](final_model& in) { named.summary_metrics.merge(in.summary_metrics); }, failed);
  if (named.model)
    self->request(actors.recorder(), caf::infinite, named).receive([] {}, failed);
}

void measure_clients(caf::scoped_actor& self, const run_actors& actors, run_report& report) {
  self->request(actors.server(), caf::infinite, measure_fairness{})
      .receive([&](fairness& in) { report.client_accuracy_deciles = std::move(in.deciles); },
               [&](const caf::error& error) { fail(report, error_message(error)); });
}

} // namespace

run_summary run_to_end(caf::actor_system& system, const run_context_ref& context, run_actors_setup setup) {
  caf::scoped_actor self(system);
  const auto* const interrupts = setup.interrupts;
  const run_actors actors(system, context, std::move(setup));
  auto report = await_end(self, actors, interrupts);
  if (report.status != run_status::failed)
    save_predictor(self, actors, report);
  if (report.status == run_status::done && context->scenario.evaluation.fairness)
    measure_clients(self, actors, report);
  run_summary summary;
  self->request(actors.recorder(), caf::infinite, finish_run{report})
      .receive([&](run_summary& written) { summary = std::move(written); },
               [&](const caf::error& error) {
                 fail(report, error_message(error));
                 summary.status = "failed";
                 summary.error = report.error;
                 summary.run_digest = hex_text(report.digest);
               });
  return summary;
}

} // namespace mneme
