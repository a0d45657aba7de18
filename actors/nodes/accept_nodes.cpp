#include "actors/nodes/accept_nodes.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/nodes/node_service.hpp"
#include "actors/nodes/placement.hpp"
#include "actors/nodes/run_fingerprint.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/scenario/device_profiles.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/read.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Offer with the content of all files that the scenario names, except data sets, which nodes must have, and output
/// folders.
node_offer offer_of(const scenario& settings) {
  auto offered = settings; // nodes may have other device profiles under the same names
  offered.devices.profiles = with_texts(std::move(offered.devices.profiles));
  node_offer content{.offer = {.name = settings.name, .scenario = resolved_text(offered)}};
  for (const auto& [key, path] : named_paths(settings)) {
    std::error_code failed;
    if (key == "data.root" || !std::filesystem::is_regular_file(path, failed)) {
      content.offer.emptied.push_back(key);
      continue;
    }
    content.offer.files.push_back(
        {.key = key, .extension = path.extension().string(), .content = digest_of_file(path.string())});
    content.files[key] = path;
  }
  return content;
}

/// Returns an error if the user's data can neither be sent to nodes nor be found by them.
diagnostics data_that_stay_here(const scenario& settings) {
  const auto& data = settings.data;
  if (data.name == "folder" && data.folder.empty())
    return {{settings.where("data.root"),
             "data.root: every node searches its own folders for images; expected data.folder, the name of a folder "
             "below an entry of $MNEME_DATA on this machine and on the nodes"}};
  std::error_code failed;
  if (data.name == "arrays" && (file_ending(data.file) == ".npy" || std::filesystem::is_directory(data.file, failed)))
    return {{settings.where("data.file"), "data.file: a run sends one file to its nodes, but these arrays are in "
                                          "several files; expected .npz or .safetensors"}};
  return {};
}

/// Starts the work of nodes. Messages of the nodes go to the placement actor.
void begin(node_pool& pool, const run_context& context, const placement_actor& placement,
           const recorder_actor& recorder) {
  const auto changed = [to = placement](node_number number, node_event event, std::string reason = {}) {
    caf::anon_send(to, node_status_change{.node = number, .event = event, .reason = std::move(reason)});
  };
  pool.begin(
      {.shards = context.shards,
       .node_workers = context.node_workers,
       .batches_per_worker = context.batches_per_worker},
      {.reported =
           [to = placement](node_number number, archive::buffer message) {
             caf::anon_send(to, node_frame{.node = number, .content = std::move(message)});
           },
       .joined = [changed](node_number number) { changed(number, node_event::joined); },
       .leaving =
           [to = placement](node_number number, std::chrono::milliseconds grace) {
             caf::anon_send(to, node_status_change{.node = number, .event = node_event::leaving, .grace = grace});
           },
       .lost = [changed](node_number number, const std::string& error) { changed(number, node_event::lost, error); },
       .warn = [to = recorder](const std::string& text) { caf::anon_send(to, run_warning{.text = text}); }});
}

const node_registration line{{.accept = &accepted_nodes::listening, .join = &serve_run, .make_keys = &make_keys}};

} // namespace

connection_limits limits_of(virtual_duration silence) {
  constexpr std::chrono::milliseconds silence_min{100};
  const auto asked = std::chrono::duration_cast<std::chrono::milliseconds>(silence);
  return {.idle_timeout = std::max(asked, silence_min)};
}

expected<run_nodes_ref> accepted_nodes::listening(const accept_options& options, virtual_duration silence,
                                                  const std::atomic<int>* interrupts) {
  auto identity = tls_identity::load(options.trust);
  if (!identity)
    return tl::unexpected(identity.error());
  node_pool_settings pool_settings{.listen = *options.address,
                                   .identity = std::move(*identity),
                                   .limits = limits_of(silence),
                                   .ranks = options.ranks,
                                   .job = options.job,
                                   .log = options.log,
                                   .nodes_stay = options.nodes_stay,
                                   .interrupts = interrupts};
  auto pool = std::make_shared<node_pool>(std::move(pool_settings));
  const auto port = pool->listen();
  if (!port)
    return tl::unexpected(port.error());
  if (options.listening)
    options.listening({.host = options.address->host, .port = *port});
  return std::make_shared<accepted_nodes>(options, std::move(pool));
}

expected<void> accepted_nodes::offer(const scenario& settings) {
  if (auto errors = data_that_stay_here(settings); !errors.empty())
    return tl::unexpected(std::move(errors));
  if (const auto error = exception_message_of([&] { pool_->offer(offer_of(settings)); }); !error.empty())
    return failed("", error);
  return {};
}

tl::expected<void, node_shortage> accepted_nodes::await_ready(const run_context& context) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(context.scenario.worker.join_timeout);
  return pool_->await_ready(run_fingerprint(context),
                            {.nodes = options_.nodes_min, .workers = options_.workers_min, .timeout = timeout});
}

void accepted_nodes::lay_out(run_context& context) {
  constexpr std::int64_t unknown_workers = 4; // assumed workers of nodes if no node is ready
  const auto workers = std::max(pool_->workers(), options_.workers_min);
  if (options_.computes)
    context.local_workers = context.workers;
  context.node_workers = (workers > 0 ? workers : unknown_workers) + context.local_workers;
  context.batches_per_worker = layout_of_nodes(context, context.node_workers).batches_per_worker;
  const auto hosts = options_.nodes_min + (options_.computes ? 1 : 0);
  if (context.device != "cpu" && context.shards < hosts && options_.log)
    options_.log(fmt::format("warning: {0} shards keep only {0} of {1} processes busy; set worker.shards = {1}",
                             context.shards, hosts));
  const auto spare = options_.nodes_min > 0 ? 1 : tuning::spare_shards; // without a minimum, more nodes may join
  if (context.device == "cpu")
    context.shards = std::max(context.shards, std::min(context.node_workers * spare, shards_of_nodes_max));
}

placement_actor accepted_nodes::start(caf::actor_system& system, const run_context_ref& context, node_links links) {
  // The placement actor asks for the first round, so `to` is set by then. The actor may still send messages after
  // end_replays().
  const auto to = std::make_shared<placement_actor>();
  replays_ = std::make_shared<replayed_rounds>(context,
                                               [to](replay_report report) { caf::anon_send(*to, std::move(report)); });
  *to = system.spawn<placement_actor::stateful_impl<placement_state>>(
      context, pool_, records_,
      placement_links{.scheduler = links.scheduler,
                      .recorder = links.recorder,
                      .local = std::move(links.local),
                      .replay = [replays = std::weak_ptr(replays_)](assignment given) {
                        if (const auto open = replays.lock())
                          open->compute(std::move(given));
                      }});
  begin(*pool_, *context, *to, links.recorder);
  return *to;
}

std::vector<node_record> accepted_nodes::records() {
  auto all = records_->all();
  for (node_number n = 0; n < all.size(); ++n) {
    const auto view = pool_->view(n);
    all[n].address = view.address;
    all[n].name = view.name;
    all[n].workers = view.workers;
    all[n].is_connected = view.is_ready;
    all[n].bytes_sent = view.traffic.bytes_sent;
    all[n].bytes_received = view.traffic.bytes_received;
    all[n].bytes_waiting = view.is_ready ? view.traffic.waiting_bytes() : 0;
  }
  return all;
}

} // namespace mneme
