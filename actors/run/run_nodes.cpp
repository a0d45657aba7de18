#include "actors/run/run_nodes.hpp"
namespace mneme {
namespace {

/// The registered functions; null if actors/nodes is not linked. A function-local static, because registrations run
/// before main().
node_support& registered_nodes() {
  static node_support support;
  return support;
}

} // namespace

run_end end_for(const diagnostics& errors) {
  return {.outcome = run_outcome::bad_input, .reason = diagnostic_text(errors.front())};
}

expected<run_nodes_ref> accept_nodes(const accept_options& options, virtual_duration silence,
                                     const std::atomic<int>* interrupts) {
  if (!options.address)
    return nullptr;
  if (!has_nodes())
    return failed("", no_nodes_in_build);
  return registered_nodes().accept(options, silence, interrupts);
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

expected<node_outcome> join_run(const node_settings& settings) {
  return has_nodes() ? registered_nodes().join(settings) : failed("", no_nodes_in_build);
}

expected<void> make_node_keys(const std::filesystem::path& folder) {
  return has_nodes() ? registered_nodes().make_keys(folder) : failed("", no_nodes_in_build);
}

bool has_nodes() noexcept { return registered_nodes().accept != nullptr; }

node_registration::node_registration(const node_support& support) noexcept { registered_nodes() = support; }

} // namespace mneme
