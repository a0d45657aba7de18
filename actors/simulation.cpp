#include "actors/simulation.hpp"
#include "actors/load_world.hpp"
#include "actors/recorder.hpp"
#include "actors/scheduler.hpp"
#include "actors/server.hpp"
#include "actors/shard.hpp"
#include "actors/worker.hpp"
#include <ATen/Parallel.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <thread>
namespace mneme {
namespace {

/// Polls for SIGINT, because a signal handler may not send messages.
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
  cast(caf::actor_system& system, const world_ref& world, recorder_setup setup) {
    recorder_ = system.spawn<recorder_actor::stateful_impl<recorder_state>>(world, std::move(setup));
    for (std::int64_t i = 0; i < world->workers; ++i)
      workers_.push_back(system.spawn<worker_actor::stateful_impl<worker_state>, caf::detached>(world, recorder_));
    pool_ = system.spawn<pool_actor::stateful_impl<pool_state>>(workers_);
    server_ = system.spawn<server_actor::stateful_impl<server_state>>(world, pool_, recorder_);
    auto peers = [this, &system, world](const scheduler_actor& scheduler) {
      for (std::uint32_t s = 0; s < world->shards; ++s)
        shards_.push_back(system.spawn<shard_actor::stateful_impl<shard_state>>(shard_id{s}, world, pool_, scheduler));
      return scheduler_peers{.server = server_, .recorder = recorder_, .shards = shards_};
    };
    scheduler_ = system.spawn<scheduler_actor::stateful_impl<scheduler_state>>(
        world, std::function<scheduler_peers(scheduler_actor)>(peers));
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
  }
  [[nodiscard]] const scheduler_actor& scheduler() const { return scheduler_; }
  [[nodiscard]] const server_actor& server() const { return server_; }
  [[nodiscard]] const recorder_actor& recorder() const { return recorder_; }

private:
  template <class Handle>
  static void end(const Handle& who) {
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
  }

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

/// Runs the actors to the end; the summary is made even where it cannot be written.
run_summary play(caf::actor_system& system, const world_ref& world, recorder_setup setup,
                 const std::atomic<int>* interrupts) {
  caf::scoped_actor self(system);
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

std::int64_t cores() { return std::max<std::int64_t>(1, std::thread::hardware_concurrency()); }

std::string default_name(const scenario& what, const std::string& digest) {
  return what.name + "-" + what.strategy.name + "-s" + std::to_string(what.seed) + "-" + digest.substr(0, 8);
}

} // namespace

expected<run_summary> run_simulation(const scenario& what, const run_options& options) {
  static const bool types_known = [] {
    caf::init_global_meta_objects<caf::id_block::mneme>();
    caf::core::init_global_meta_objects();
    at::set_num_threads(1); // parallelism comes from workers
    return true;
  }();
  MNEME_CHECK(types_known);

  std::shared_ptr<const partition> split;
  auto loaded = load_world(what, options.trace ? &split : nullptr);
  if (!loaded)
    return tl::unexpected{loaded.error()};
  auto& world = **loaded;
  const auto threads = options.threads > 0 ? options.threads : cores();
  world.workers = what.worker.count > 0 ? what.worker.count : threads;
  if (world.device != "cpu")
    world.workers = 1;
  world.trace = options.trace;

  const auto digest = scenario_digest(what);
  auto directory = run_directory::create(options.out, default_name(what, digest));
  if (!directory)
    return tl::unexpected{directory.error()};
  auto files = std::make_shared<run_directory>(std::move(*directory));
  auto view = std::make_shared<progress>(stdout, options.style);
  try {
    files->write("scenario.toml", resolved_text(what));
    if (split)
      files->write_partition(*split, what.clients.count, std::ssize(world.tasks->tasks), *world.tasks->train);
  } catch (const std::exception& e) {
    run_summary summary;
    summary.status = "failed";
    summary.error = e.what();
    return summary;
  }
  view->started(what.title, files->path().string(), what.seed, digest);

  caf::actor_system_config config;
  config.set("caf.scheduler.max-threads", static_cast<std::size_t>(threads));
  config.set("caf.scheduler.policy", "sharing"); // threads sleep when idle: polling would take time from workers
  caf::actor_system system(config);
  auto summary = play(system, *loaded, {.files = files, .view = view, .digest = digest}, options.interrupts);
  try {
    world.features->save();
  } catch (const std::exception& e) { // the run is whole without it
    view->warned(std::string("features of the frozen net were not kept: ") + e.what());
  }
  return summary;
}

findings check_against_data(const scenario& what) {
  const auto loaded = load_world(what);
  return loaded ? findings{} : loaded.error();
}

} // namespace mneme
