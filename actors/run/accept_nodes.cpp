#include "actors/run/accept_nodes.hpp"
#include "actors/compute/compute_layout.hpp"
#include "actors/run/node_session.hpp"
#include "actors/run/run_fingerprint.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/scenario/device_profiles.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/read.hpp"
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

} // namespace

connection_limits limits_of(virtual_duration silence) {
  constexpr std::chrono::milliseconds silence_min{100};
  const auto asked = std::chrono::duration_cast<std::chrono::milliseconds>(silence);
  return {.idle_timeout = std::max(asked, silence_min)};
}

expected<std::shared_ptr<node_pool>> accept_nodes(const accept_options& options, virtual_duration silence,
                                                  const std::atomic<int>* interrupts) {
  if (!options.address)
    return nullptr;
  auto identity = tls_identity::load(options.trust);
  if (!identity)
    return tl::unexpected(identity.error());
  node_pool_settings pool_settings{.listen = *options.address,
                                   .identity = std::move(*identity),
                                   .limits = limits_of(silence),
                                   .ranks = options.ranks,
                                   .log = options.log,
                                   .nodes_stay = options.nodes_stay,
                                   .interrupts = interrupts};
  auto nodes = std::make_shared<node_pool>(std::move(pool_settings));
  const auto port = nodes->listen();
  if (!port)
    return tl::unexpected(port.error());
  if (options.listening)
    options.listening({.host = options.address->host, .port = *port});
  return nodes;
}

expected<void> offer_scenario(node_pool& nodes, const scenario& settings) {
  if (auto errors = data_that_stay_here(settings); !errors.empty())
    return tl::unexpected(std::move(errors));
  if (const auto error = exception_message_of([&] { nodes.offer(offer_of(settings)); }); !error.empty())
    return failed("", error);
  return {};
}

run_end end_for(const diagnostics& errors) {
  return {.outcome = run_outcome::bad_input, .reason = diagnostic_text(errors.front())};
}

void end_ranks(const accept_options& options, const run_end& outcome) {
  if (options.ranks == 0)
    return;
  auto quiet = options;
  quiet.nodes_stay = false;
  quiet.listening = nullptr;
  if (const auto nodes = accept_nodes(quiet, worker_section{}.node_timeout, nullptr))
    (*nodes)->finish(outcome);
}

tl::expected<void, node_shortage> await_nodes(node_pool& nodes, const run_context& context,
                                              const accept_options& options) {
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(context.scenario.worker.join_timeout);
  return nodes.await_ready(run_fingerprint(context),
                           {.nodes = options.nodes_min, .workers = options.workers_min, .timeout = timeout});
}

void lay_out_for_nodes(run_context& context, node_pool& nodes, const accept_options& options) {
  constexpr std::int64_t unknown_workers = 4; // assumed workers of nodes if no node is ready
  const auto workers = std::max(nodes.workers(), options.workers_min);
  if (options.computes)
    context.local_workers = context.workers;
  context.node_workers = (workers > 0 ? workers : unknown_workers) + context.local_workers;
  context.batches_per_worker = layout_of_nodes(context, context.node_workers).batches_per_worker;
  const auto hosts = options.nodes_min + (options.computes ? 1 : 0);
  if (context.device != "cpu" && context.shards < hosts && options.log)
    options.log(fmt::format("warning: {0} shards keep only {0} of {1} processes busy; set worker.shards = {1}",
                            context.shards, hosts));
  const auto spare = options.nodes_min > 0 ? 1 : tuning::spare_shards; // without a required minimum, more nodes may
                                                                       // join later
  if (context.device == "cpu")
    context.shards = std::max(context.shards, std::min(context.node_workers * spare, shards_of_nodes_max));
}

std::vector<node_record> records_of(node_pool& nodes, const node_records& records) {
  auto all = records.all();
  for (node_number n = 0; n < all.size(); ++n) {
    const auto view = nodes.view(n);
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
