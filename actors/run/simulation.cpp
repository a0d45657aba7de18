#include "actors/run/simulation.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/run/actor_metrics_exporter.hpp"
#include "actors/run/backbone_training.hpp"
#include "actors/run/dry_run.hpp"
#include "actors/run/input_files.hpp"
#include "actors/run/load_run_context.hpp"
#include "actors/run/process.hpp"
#include "actors/run/run_actors.hpp"
#include "runtime/base/arithmetic.hpp"
#include "runtime/base/checkpoint_loaded.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/training/bit_reproducibility.hpp"
#include <algorithm>
#include <caf/actor_system_config.hpp>
#include <fmt/format.h>
#include <thread>
namespace mneme {
namespace {

std::int64_t cores() { return std::max<std::int64_t>(1, std::thread::hardware_concurrency()); }

std::int64_t threads_of(const run_options& options) { return options.threads > 0 ? options.threads : cores(); }

/// Number of threads for the actors that do not compute. Passing a message to another thread costs more than handling
/// it, so a second thread pays off only with many workers. More threads than shards would be idle.
std::size_t control_threads(const run_context& context, const run_options& options) {
  const auto fed = threads_of(options) / tuning::workers_per_actor_thread;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(fed, 1, context.shards));
}

/// Fails unless the process uses the requested arithmetic. LibTorch selects its kernels once, when the process starts.
expected<void> check_arithmetic(const scenario& settings) {
  const bool asks_portable = settings.worker.arithmetic == arithmetic_kind::portable;
  if (asks_portable && !is_portable())
    return failed(settings.where("worker.arithmetic"),
                  "this process uses machine arithmetic, but portable arithmetic is required; start it with "
                  "MNEME_ARITHMETIC=portable, ATEN_CPU_CAPABILITY=avx2 and GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4 "
                  "in its environment (mneme run does this automatically)");
  if (!asks_portable && is_portable())
    return failed(settings.where("worker.arithmetic"),
                  "this process uses portable arithmetic (MNEME_ARITHMETIC=portable in its environment), but "
                  "worker.arithmetic = \"machine\"");
  return {};
}

struct loaded_run {
  std::shared_ptr<run_context> context{};
  std::string failure{}; // error of the machine that prevents the run
  diagnostics warnings{};
  std::string data_digest{};
};

void set_pending(const run_options& options, std::string reason) {
  if (options.live)
    options.live->prepares(std::move(reason));
}

/// Loads all inputs of a scenario. @param nodes null: the run accepts no nodes
/// @param split receives the partition for partition.csv; may be null
expected<loaded_run> load_run(const scenario& settings, const run_options& options, run_nodes* nodes,
                              std::shared_ptr<const partition>* split, const std::filesystem::path& backbone) {
  prepare_process();
  set_pending(options, "loads the scenario");
  if (auto right = check_arithmetic(settings); !right)
    return tl::unexpected{right.error()};
  if (nodes) {
    auto offered = settings;
    if (!backbone.empty()) { // nodes receive the trained weights
      offered.model.backbone.clear();
      offered.model.weights = backbone;
    }
    if (auto sent = nodes->offer(offered); !sent) // nodes load while this process loads
      return tl::unexpected{sent.error()};
  }
  diagnostics warnings;
  std::string data_digest;
  auto loaded = load_run_context(settings, {.split = split,
                                            .data = options.data.get(),
                                            .warnings = &warnings,
                                            .data_digest = &data_digest,
                                            .backbone = backbone});
  if (!loaded)
    return tl::unexpected{loaded.error()};
  auto& context = **loaded;
  if (auto ended = check_trace_ends(context); !ended.empty())
    return tl::unexpected{std::move(ended)};
  if (is_portable() && context.device != "cpu")
    return failed(settings.where("worker.device"),
                  "worker.device: expected \"cpu\" with worker.arithmetic = \"portable\"; a GPU computes other bits");
  const auto layout = layout_of(context, threads_of(options));
  context.workers = layout.workers;
  context.hosts = layout.hosts;
  context.shards = layout.shards;
  context.batches_per_worker = layout.batches_per_worker;
  context.control_computes = layout.control_computes;
  context.trace = options.trace;
  context.dumped_round = options.dumped_round;
  context.events_max = options.events_max;
  context.stored_results_max = options.stored_results_max;
  if (nodes) {
    if (settings.worker.verify_share > 0.0 && context.device != "cpu")
      return failed(settings.where("worker.verify_share"),
                    "worker.verify_share: expected 0 on " + context.device + ", since bits depend on the batch there");
    set_pending(options, "waits for nodes");
    if (auto ready = nodes->await_ready(context); !ready) {
      if (ready.error().outcome == run_outcome::failed)
        return loaded_run{.failure = ready.error().reasons.front().text};
      return tl::unexpected{ready.error().reasons};
    }
    nodes->lay_out(context);
  }
  set_pending(options, "starts the run");
  return loaded_run{.context = *loaded, .warnings = std::move(warnings), .data_digest = std::move(data_digest)};
}

/// Everything that a run needs before its actors are created: inputs, directory and progress.
struct prepared_run {
  std::shared_ptr<run_context> context{};
  run_nodes_ref nodes{}; // null: the run accepts no nodes
  std::shared_ptr<run_directory> files{};
  std::string digest{};
  std::shared_ptr<progress> view{};
};

run_summary failed_before_it_began(const std::string& reason) {
  run_summary summary;
  summary.status = "failed";
  summary.error = reason;
  return summary;
}

/// Returns an error if the data have changed since the run began; "" otherwise. Results on old and new data must not be
/// mixed.
std::string other_data(const run_origin& origin, const std::string& now, const scenario& settings) {
  if (origin.data_digest.empty() || origin.data_digest == now)
    return {};
  return fmt::format("the data set '{}' has changed since the run began: its digest was {} and is {}{}; restore the "
                     "old files and resume again, or start a new run",
                     settings.data.name, origin.data_digest, now, find_changed_data_files(origin, settings));
}

checkpoint_label label_of(const prepared_run& run) { return {.scenario_digest = run.digest, .program = MNEME_VERSION}; }

/// Folder for the state of unfinished programs.
std::filesystem::path programs_of(const prepared_run& run) { return run.files->checkpoints() / "programs"; }

/// Opens the folder for checkpoints and removes those newer than `last`. Returns null if checkpoints are disabled.
std::shared_ptr<checkpoint_folder> checkpoints_of(const prepared_run& run, const std::filesystem::path& last) {
  const auto& plan = run.context->scenario.checkpoint;
  auto folder = std::make_shared<checkpoint_folder>(run.files->checkpoints(), label_of(run), plan.keep);
  folder->forget_after(last);
  return plan.every > 0 ? folder : nullptr;
}

void warn_of(const diagnostics& problems, const run_options& options, progress& view) {
  if (options.warnings) {
    append(*options.warnings, problems);
    return;
  }
  for (const auto& warning : problems)
    view.warned(warning.where + ": " + warning.text);
}

/// Removes the checkpoints and the program states of this process, because they contain wrong results of a node.
void forget_all_since(checkpoint_folder& checkpoints, const std::filesystem::path& from,
                      const std::filesystem::path& programs, progress& view) {
  const auto reason = exception_message_of([&] {
    checkpoints.forget_after(from);
    std::filesystem::remove_all(programs);
  });
  if (!reason.empty())
    view.warned("cannot remove untrusted checkpoints: " + reason);
}

/// Warns if results on the CPU depend on how rows are batched. Devices have other guarantees, so this function does not
/// check them.
void warn_of_other_bits(const prepared_run& run) {
  if (run.context->device != "cpu")
    return;
  // Checked once per process, with a token net: only its matrix products are known to depend on the batch.
  static const auto warning = warning_of(check_reproducibility({small_nets().back()}));
  if (!warning.empty())
    run.view->warned(warning);
}

/// Runs the actors to the end. @param from checkpoint from which the run resumes; empty for a new run
run_summary perform(const prepared_run& run, run_actors_setup setup, const run_options& options,
                    const std::filesystem::path& from) {
  caf::actor_system_config config;
  configure(config, control_threads(*run.context, options),
            {.waits_for_nodes = run.nodes != nullptr, .measures_actors = options.measures_actors});
  caf::actor_system system(config);
  const actor_metrics_exporter shown(system, options.live.get());
  forget_settings(config);
  setup.recorder.files = run.files;
  setup.recorder.view = run.view;
  setup.recorder.live = options.live;
  setup.recorder.draw_accuracy = options.draw_accuracy;
  setup.recorder.digest = run.digest;
  setup.interrupts = options.interrupts;
  if (run.nodes) {
    setup.nodes = run.nodes;
    setup.recorder.nodes = [nodes = run.nodes] { return nodes->records(); };
  }
  const bool resumable = setup.checkpoints != nullptr;
  const auto checkpoints = setup.checkpoints;
  run.context->interrupts = options.interrupts;
  if (resumable) {
    run.context->slices = std::make_shared<slice_store>(programs_of(run), label_of(run));
    run.context->slices->load();
  }
  warn_of_other_bits(run);
  auto summary = run_to_end(system, run.context, std::move(setup));
  for (const auto& damage : run.context->features->damaged())
    run.view->warned(damage.where + ": " + damage.text + "; it was recomputed");
  const bool is_trusted = !run.nodes || run.nodes->results_trusted();
  if (resumable && !is_trusted)
    forget_all_since(*checkpoints, from, programs_of(run), *run.view);
  // A run is complete even if its features cannot be saved. If slices cannot be saved, a resumed run restarts its
  // programs.
  if (const auto reason = exception_message_of([&] { run.context->features->save(); }); !reason.empty())
    run.view->warned("cannot save features of the frozen net: " + reason);
  if (resumable && is_trusted)
    if (const auto reason = exception_message_of([&] { run.context->slices->save(); }); !reason.empty())
      run.view->warned("cannot save the progress of programs: " + reason);
  summary.folder = run.files->path().string();
  if (resumable && summary.status != "done")
    summary.resume_from = run.files->resumable_at().string();
  return summary;
}

// -- resume -----------------------------------------------------------------------------------------------------------

/// Newest intact checkpoint of a run.
struct starting_point {
  resume_state_ref past{}; ///< Null if no checkpoint is intact.
  std::filesystem::path file{};
  diagnostics broken{}; ///< Errors of newer checkpoints, which are damaged.
};

expected<starting_point> starting_point_of(const prepared_run& run) {
  auto past = std::make_shared<resume_state>();
  auto search = find_checkpoint(run.files->checkpoints(), label_of(run), [&](const checkpoint& kept) -> std::string {
    if (kept.sections.size() != checkpoint_parts)
      return "this checkpoint has other sections than this version of mneme writes";
    auto recorder = kept.sections[recorder_part];
    recorder(past->recorded);
    recorder.expect_end();
    const auto shorter = run.files->file_shorter_than(past->recorded.lines);
    return shorter.empty() ? "" : shorter + " is shorter than at this checkpoint";
  });
  if (!search)
    return tl::unexpected{search.error()};
  if (!search->newest)
    return starting_point{.broken = std::move(search->broken)};
  past->run = search->newest->sections[run_part];
  past->run.onto(c10::Device(run.context->device));
  mark_checkpoint_loaded();
  return starting_point{.past = past, .file = search->newest->path, .broken = std::move(search->broken)};
}

void say_where(const prepared_run& run, const starting_point& from) {
  for (const auto& diagnostic : from.broken)
    run.view->warned(diagnostic.where + ": " + diagnostic.text);
  const auto name = run.files->path().string();
  if (!from.past)
    return run.view->resumed("no checkpoint of " + name + " is intact: the run starts from the beginning", 0, 0);
  const auto& done = from.past->recorded;
  run.view->resumed(fmt::format("{} continues after round {}", name, done.rounds), done.rounds, done.client_rounds);
  if (done.device != run.context->device)
    run.view->warned("the run was computed on " + done.device + " and continues on " + run.context->device +
                     ": its results may differ from those of an uninterrupted run");
}

} // namespace

std::string default_run_name(const scenario& settings, const std::string& digest) {
  return settings.name + "-" + settings.strategy.name + "-s" + std::to_string(settings.seed) + "-" +
         digest.substr(0, 8);
}

namespace {

expected<trained_net> backbone_of(const scenario& settings, const run_options& options) {
  if (!settings.model.backbone.empty())
    set_pending(options, "trains the backbone, or loads it");
  return load_or_train_backbone(settings, options);
}

expected<run_summary> run_with(const run_nodes_ref& nodes, const scenario& settings, const run_options& options) {
  std::shared_ptr<const partition> split;
  const auto backbone = backbone_of(settings, options);
  if (!backbone)
    return tl::unexpected{backbone.error()};
  if (backbone->unfinished)
    return *backbone->unfinished;
  const bool counts_classes = options.trace || settings.evaluation.personal != personal_model::none;
  auto loaded = load_run(settings, options, nodes.get(), counts_classes ? &split : nullptr, backbone->weights);
  if (!loaded)
    return tl::unexpected{loaded.error()};
  if (!loaded->failure.empty())
    return failed_before_it_began(loaded->failure);
  prepared_run run{.context = loaded->context, .nodes = nodes, .digest = scenario_digest(settings)};
  auto directory = run_directory::create(options.out, default_run_name(settings, run.digest));
  if (!directory)
    return tl::unexpected{directory.error()};
  run.files = std::make_shared<run_directory>(std::move(*directory));
  run.view = std::make_shared<progress>(stdout, options.style, options.share_done);
  const auto unwritten = exception_message_of([&] {
    auto inputs = input_files_of(settings);
    run.files->write_origin({.scenario = settings.name,
                             .scenario_digest = run.digest,
                             .data_digest = loaded->data_digest,
                             .trace = options.trace,
                             .files = std::move(inputs.named),
                             .data_files = std::move(inputs.data)});
    if (split)
      run.files->write_client_classes(*split, settings.clients.count, *run.context->tasks);
    if (options.trace)
      run.files->write_partition(*split, settings.clients.count, std::ssize(run.context->tasks->tasks),
                                 *run.context->tasks->train);
    run.files->write("scenario.toml", resolved_text(settings)); // written last: from now on the run can be resumed
  });
  if (!unwritten.empty())
    return failed_before_it_began(unwritten);
  run.view->started(settings.title, run.files->path().string(), settings.seed, run.digest);
  warn_of(loaded->warnings, options, *run.view);
  return perform(run, {.checkpoints = checkpoints_of(run, {})}, options, {});
}

expected<std::optional<run_summary>> resume_with(const run_nodes_ref& nodes, const std::filesystem::path& folder,
                                                 const run_options& options) {
  auto directory = run_directory::open(folder);
  if (!directory)
    return tl::unexpected{directory.error()};
  const auto status = directory->status();
  if (!status)
    return tl::unexpected{status.error()};
  if (*status == "done")
    return std::nullopt;
  const auto origin = directory->origin();
  auto read = read_scenario(folder / "scenario.toml", {});
  if (!origin || !read)
    return tl::unexpected{origin ? read.error() : origin.error()};
  read->value.name = origin->scenario;
  if (auto changed = check_input_files(*origin, read->value); !changed.empty())
    return tl::unexpected{std::move(changed)};
  auto resumed = options;
  resumed.trace = origin->trace;
  const auto backbone = backbone_of(read->value, resumed);
  if (!backbone)
    return tl::unexpected{backbone.error()};
  if (backbone->unfinished)
    return std::optional(*backbone->unfinished);
  auto loaded = load_run(read->value, resumed, nodes.get(), nullptr, backbone->weights);
  if (!loaded)
    return tl::unexpected{loaded.error()};
  if (!loaded->failure.empty())
    return std::optional(failed_before_it_began(loaded->failure));
  // starting_point_of() reports a changed scenario later
  const bool is_same_scenario = origin->scenario_digest == scenario_digest(read->value);
  if (const auto other = other_data(*origin, loaded->data_digest, read->value); is_same_scenario && !other.empty())
    return failed(directory->path().string(), other);

  prepared_run run{.context = loaded->context,
                   .nodes = nodes,
                   .files = std::make_shared<run_directory>(std::move(*directory)),
                   .digest = scenario_digest(read->value),
                   .view = std::make_shared<progress>(stdout, options.style, options.share_done)};
  const auto from = starting_point_of(run);
  if (!from)
    return tl::unexpected{from.error()};
  run_actors_setup setup{.past = from->past};
  if (from->past)
    setup.recorder.past = from->past->recorded;
  const auto& done = setup.recorder.past;
  run.view->started(read->value.title, run.files->path().string(), read->value.seed, run.digest);
  warn_of(loaded->warnings, options, *run.view);
  say_where(run, *from);
  const auto reason = exception_message_of([&] {
    run.files->truncate_to_checkpoint(done.evaluations, done.matrix, std::ssize(run.context->tasks->tasks),
                                      run.context->tasks->class_names, done.lines);
    setup.checkpoints = checkpoints_of(run, from->file);
  });
  if (!reason.empty())
    return failed_before_it_began(reason);
  return perform(run, std::move(setup), options, from->file);
}

const run_summary* summary_of(const run_summary& ended) { return &ended; }
const run_summary* summary_of(const std::optional<run_summary>& ended) { return ended ? &*ended : nullptr; }

/// Outcome that a run sends to its nodes. @param ended null: the run was complete before this process started
run_end outcome_of(const run_summary* ended) {
  if (!ended || ended->status == "done")
    return {.outcome = run_outcome::done, .reason = ""};
  if (ended->status == "interrupted")
    return {.outcome = run_outcome::interrupted, .reason = ""};
  return {.outcome = run_outcome::failed, .reason = ended->error};
}

/// Opens the address for nodes, calls run(nodes), and sends its outcome to the nodes.
template <class Run>
auto run_and_end_nodes(const run_options& options, virtual_duration silence, Run run)
    -> decltype(run(run_nodes_ref())) {
  prepare_process();
  const auto nodes = accept_nodes(options.accept, silence, options.interrupts);
  if (!nodes)
    return tl::unexpected{nodes.error()};
  auto ended = run(*nodes);
  if (!ended)
    set_pending(options, "the run has not started: " + diagnostic_text(ended.error().front()));
  if (!*nodes)
    return ended;
  const bool is_interrupted = options.interrupts && options.interrupts->load() > 0;
  if (ended)
    (*nodes)->finish(outcome_of(summary_of(*ended)));
  else if (is_interrupted)
    (*nodes)->finish({.outcome = run_outcome::interrupted, .reason = ""});
  else
    (*nodes)->finish(end_for(ended.error()));
  return ended;
}

} // namespace

expected<run_summary> run_simulation(const scenario& settings, const run_options& options) {
  return run_and_end_nodes(options, settings.worker.node_timeout,
                           [&](const run_nodes_ref& nodes) { return run_with(nodes, settings, options); });
}

expected<std::optional<run_summary>> resume_simulation(const std::filesystem::path& folder,
                                                       const run_options& options) {
  const auto read = read_scenario(folder / "scenario.toml", {});
  const auto silence = read ? read->value.worker.node_timeout : worker_section{}.node_timeout;
  return run_and_end_nodes(options, silence,
                           [&](const run_nodes_ref& nodes) { return resume_with(nodes, folder, options); });
}

diagnostics check_against_data(const scenario& settings, const raw_data* data, diagnostics* warnings) {
  const auto loaded = load_run_context(settings, {.use = run_context_use::check, .data = data, .warnings = warnings});
  return loaded ? check_trace_ends(**loaded) : loaded.error();
}

} // namespace mneme
