/// accept_nodes: implements run_nodes with a pool of connected nodes.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include "actors/nodes/node_records.hpp"
#include "actors/nodes/replayed_rounds.hpp"
#include "actors/run/run_nodes.hpp"
namespace mneme {

class accepted_nodes final : public run_nodes {
public:
  /// Starts to listen for nodes. See accept_nodes() in actors/run/run_nodes.hpp.
  [[nodiscard]] static expected<run_nodes_ref> listening(const accept_options& options, virtual_duration silence,
                                                         const std::atomic<int>* interrupts);
  accepted_nodes(accept_options options, std::shared_ptr<node_pool> pool)
      : options_(std::move(options)), pool_(std::move(pool)) {}
  [[nodiscard]] expected<void> offer(const scenario& settings) override;
  [[nodiscard]] tl::expected<void, node_shortage> await_ready(const run_context& context) override;
  void lay_out(run_context& context) override;
  [[nodiscard]] placement_actor start(caf::actor_system& system, const run_context_ref& context,
                                      node_links links) override;
  void detach() override { pool_->detach(); }
  void end_replays() override { replays_.reset(); }
  void finish(run_end outcome) override { pool_->finish(std::move(outcome)); }
  [[nodiscard]] std::vector<node_record> records() override;
  [[nodiscard]] bool results_trusted() const override { return records_->results_trusted(); }

private:
  const accept_options options_;
  const std::shared_ptr<node_pool> pool_;
  const std::shared_ptr<node_records> records_ = std::make_shared<node_records>(); // filled by the placement actor
  std::shared_ptr<replayed_rounds> replays_; // null before start() and after end_replays()
};

/// Derives connection limits from the longest accepted silence of a peer, which is at least 100 ms.
[[nodiscard]] connection_limits limits_of(virtual_duration silence);

} // namespace mneme
