#include "actors/run/simulation.hpp"
#include "actors/compute/worker.hpp"
#include "actors/run/cast.hpp"
#include "actors/run/load_world.hpp"
#include "runtime/base/one_thread.hpp"
#include "runtime/scenario/read.hpp"
#include <algorithm>
#include <caf/actor_system_config.hpp>
#include <caf/init_global_meta_objects.hpp>
#include <caf/thread_hook.hpp>
#include <fmt/format.h>
#include <thread>
namespace mneme {
namespace {

std::int64_t cores() { return std::max<std::int64_t>(1, std::thread::hardware_concurrency()); }

std::int64_t threads_of(const run_options& options) { return options.threads > 0 ? options.threads : cores(); }

/// Threads of the actors that do not compute. A message handed to another thread costs more than most take to handle,
/// so it needs many workers to make a second one worth while, and shards that it can run.
std::size_t control_threads(const world& what, const run_options& options) {
  constexpr std::int64_t workers_fed = 8;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(threads_of(options) / workers_fed, 1, what.shards));
}

/// Whether a batch is so short that handing it to a worker is felt, and long enough for a thread of its own to be worth
/// waking.
bool has_short_batches(const world& what) {
  const auto clients = std::max<std::int64_t>(what.what.clients.count, 1);
  const auto rows = std::ssize(what.tasks->tasks.front().train) / clients * what.what.training.epochs;
  const auto size = static_cast<double>(rows) * static_cast<double>(what.net->size()); // multiplications of a client
  return what.device == "cpu" && what.workers > 1 && what.needs.upload_size_known &&
         what.what.rounds.mode == round_mode::sync && what.net->dense_layers() && size > multiplications_of_trifle &&
         size < multiplications_of_short / 10;
}

/// Shards compute short batches by themselves, one for each thread that a cohort keeps busy. More of them than clients
/// call for are made only where the scenario names no number, and on a CPU, whose bits do not depend on it.
void choose_who_computes(world& what) {
  constexpr std::int64_t clients_of_thread = 4;
  const auto stated = what.what.rounds.cohort;
  const auto cohort = stated > 0 ? std::min(stated, what.what.clients.count) : what.what.clients.count;
  const auto threads = std::min(what.workers, cohort / clients_of_thread);
  if (threads < 2 || !has_short_batches(what))
    return;
  if (what.what.worker.shards == 0)
    what.shards = std::max(what.shards, threads);
  what.shards_compute = what.shards >= threads;
}

std::string default_name(const scenario& what, const std::string& digest) {
  return what.name + "-" + what.strategy.name + "-s" + std::to_string(what.seed) + "-" + digest.substr(0, 8);
}

/// A scenario with all that is loaded for it. `split` is wanted for partition.csv only.
expected<std::shared_ptr<world>> ready_world(const scenario& what, const run_options& options,
                                             std::shared_ptr<const partition>* split) {
  static const bool types_known = [] {
    caf::init_global_meta_objects<caf::id_block::mneme>();
    caf::core::init_global_meta_objects();
    return true;
  }();
  MNEME_CHECK(types_known);
  compute_on_one_thread();
  auto loaded = load_world(what, split);
  if (!loaded)
    return loaded;
  auto& world = **loaded;
  world.workers = what.worker.count > 0 ? what.worker.count : threads_of(options);
  if (world.device != "cpu")
    world.workers = 1;
  choose_who_computes(world);
  world.trace = options.trace;
  world.events_max = options.events_max;
  world.stored_results_max = options.stored_results_max;
  return loaded;
}

/// A run directory and who watches it, before the actors come.
struct stage {
  std::shared_ptr<world> what{};
  std::shared_ptr<run_directory> files{};
  std::string digest{};
  std::shared_ptr<progress> view{};
};

run_summary failed_before_it_began(const std::exception& why) {
  run_summary summary;
  summary.status = "failed";
  summary.error = why.what();
  return summary;
}

checkpoint_label label_of(const stage& on) { return {.scenario_digest = on.digest, .program = MNEME_VERSION}; }

/// The folder in which checkpoints are kept, without those after `last`; null if none are wanted.
std::shared_ptr<checkpoint_folder> checkpoints_of(const stage& on, const std::filesystem::path& last) {
  const auto& wanted = on.what->what.checkpoint;
  auto folder = std::make_shared<checkpoint_folder>(on.files->checkpoints(), label_of(on), wanted.keep);
  folder->forget_after(last);
  return wanted.every > 0 ? folder : nullptr;
}

/// Threads of actors compute too: a worker its batches, the server's its step.
class one_thread_hook final : public caf::thread_hook {
public:
  void init(caf::actor_system& /*system*/) override {}
  void thread_started() override { compute_on_one_thread(); }
  void thread_terminates() override {}
};

run_summary perform(const stage& on, cast_setup setup, const run_options& options) {
  caf::actor_system_config config;
  config.set("caf.scheduler.policy", "sharing"); // threads sleep when idle: polling would take time from workers
  config.set("caf.scheduler.max-threads", control_threads(*on.what, options));
  config.add_thread_hook<one_thread_hook>();
  caf::actor_system system(config);
  setup.recorder.files = on.files;
  setup.recorder.view = on.view;
  setup.recorder.digest = on.digest;
  setup.interrupts = options.interrupts;
  const bool resumable = setup.checkpoints != nullptr;
  auto summary = play(system, on.what, std::move(setup));
  try {
    on.what->features->save();
  } catch (const std::exception& e) { // the run is whole without it
    on.view->warned(std::string("features of the frozen net were not kept: ") + e.what());
  }
  if (resumable && summary.status != "done")
    summary.resume_from = on.files->path().string();
  return summary;
}

// -- going on ---------------------------------------------------------------------------------------------------------

/// The newest checkpoint that can be gone on from.
struct starting_point {
  past_ref past{}; ///< Null: there is none.
  std::filesystem::path file{};
  findings broken{}; ///< Newer ones.
};

expected<starting_point> starting_point_of(const stage& on) {
  auto past = std::make_shared<run_past>();
  auto search = find_checkpoint(on.files->checkpoints(), label_of(on), [&](const checkpoint& found) -> std::string {
    if (found.sections.size() != checkpoint_parts)
      return "this checkpoint has other parts than this program writes";
    auto recorder = found.sections[recorder_part];
    recorder(past->recorded);
    recorder.expect_end();
    return on.files->has_events(past->recorded.events_bytes) ? "" : "events.csv is shorter than at this checkpoint";
  });
  if (!search)
    return tl::unexpected{search.error()};
  if (!search->newest)
    return starting_point{.broken = std::move(search->broken)};
  past->run = search->newest->sections[run_part];
  return starting_point{.past = past, .file = search->newest->path, .broken = std::move(search->broken)};
}

void say_where(const stage& on, const starting_point& from) {
  for (const auto& one : from.broken)
    on.view->warned(one.where + ": " + one.text);
  const auto name = on.files->path().string();
  if (!from.past)
    return on.view->resumed("no checkpoint of " + name + " is whole: the run starts from the beginning", 0, 0);
  const auto& done = from.past->recorded;
  on.view->resumed(fmt::format("{} goes on after round {}", name, done.rounds), done.rounds, done.client_rounds);
  if (done.device != on.what->device)
    on.view->warned("the run was computed on " + done.device + " and goes on on " + on.what->device +
                    ": its results may differ from those of an uninterrupted run");
}

} // namespace

expected<run_summary> run_simulation(const scenario& what, const run_options& options) {
  std::shared_ptr<const partition> split;
  auto loaded = ready_world(what, options, options.trace ? &split : nullptr);
  if (!loaded)
    return tl::unexpected{loaded.error()};
  stage on{.what = *loaded, .digest = scenario_digest(what)};
  auto directory = run_directory::create(options.out, default_name(what, on.digest));
  if (!directory)
    return tl::unexpected{directory.error()};
  on.files = std::make_shared<run_directory>(std::move(*directory));
  on.view = std::make_shared<progress>(stdout, options.style);
  try {
    on.files->write_origin({.scenario = what.name, .trace = options.trace});
    if (split)
      on.files->write_partition(*split, what.clients.count, std::ssize(on.what->tasks->tasks), *on.what->tasks->train);
    on.files->write("scenario.toml", resolved_text(what)); // last: from here on the run can be resumed
  } catch (const std::exception& e) {
    return failed_before_it_began(e);
  }
  on.view->started(what.title, on.files->path().string(), what.seed, on.digest);
  return perform(on, {.checkpoints = checkpoints_of(on, {})}, options);
}

expected<std::optional<run_summary>> resume_simulation(const std::filesystem::path& folder,
                                                       const run_options& options) {
  auto directory = run_directory::open(folder);
  if (!directory)
    return tl::unexpected{directory.error()};
  if (directory->status() == "done")
    return std::nullopt;
  const auto origin = directory->origin();
  auto read = read_scenario(folder / "scenario.toml", {});
  if (!origin || !read)
    return tl::unexpected{origin ? read.error() : origin.error()};
  read->value.name = origin->scenario;
  auto wanted = options;
  wanted.trace = origin->trace;
  auto loaded = ready_world(read->value, wanted, nullptr);
  if (!loaded)
    return tl::unexpected{loaded.error()};

  stage on{.what = *loaded,
           .files = std::make_shared<run_directory>(std::move(*directory)),
           .digest = scenario_digest(read->value),
           .view = std::make_shared<progress>(stdout, options.style)};
  const auto from = starting_point_of(on);
  if (!from)
    return tl::unexpected{from.error()};
  cast_setup setup{.past = from->past};
  if (from->past)
    setup.recorder.past = from->past->recorded;
  const auto& done = setup.recorder.past;
  on.view->started(read->value.title, on.files->path().string(), read->value.seed, on.digest);
  say_where(on, *from);
  try {
    on.files->cut_back(done.evaluations, done.matrix, std::ssize(on.what->tasks->tasks), done.events_bytes);
    setup.checkpoints = checkpoints_of(on, from->file);
  } catch (const std::exception& e) {
    return failed_before_it_began(e);
  }
  return perform(on, std::move(setup), options);
}

findings check_against_data(const scenario& what) {
  const auto loaded = load_world(what, nullptr, world_use::check);
  return loaded ? findings{} : loaded.error();
}

} // namespace mneme
