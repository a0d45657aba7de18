/// aggregated_server: a server half that adds noise to folded uploads, or replaces their mean with a rule of
/// [aggregation].
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/server_half.hpp"
#include "runtime/settings/scenario.hpp"
#include <memory>
#include <vector>
namespace mneme {

/// Key of the noise in node `index` at `level` of DP-FTRL's tree. The node covers rounds index * 2^level + 1 to (index
/// + 1) * 2^level.
[[nodiscard]] rng_key tree_node_key(std::uint64_t seed, std::uint32_t level, std::uint64_t index);

/// Forwards all calls to the method's server half. Synchronous rounds only.
class aggregated_server final : public server_half {
public:
  struct options {
    std::uint64_t seed = 0;
    uploads_section uploads{};
    aggregation_section aggregation{};
    std::int64_t cohort = 0; ///< Clients in a full cohort.
  };
  aggregated_server(std::unique_ptr<server_half> method, options options);
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  broadcast open_round(const round_info& info) override;
  void fold(const delivery& in) override;
  task<void> close_round(server_context& ctx, const round_info& info) override;
  [[nodiscard]] predictor predict() const override { return method_->predict(); }
  [[nodiscard]] predictor predict_for(client_id client) const override { return method_->predict_for(client); }
  [[nodiscard]] std::map<std::string, double> summary_metrics() const override { return method_->summary_metrics(); }
  [[nodiscard]] std::map<std::string, at::Tensor> sample_images() const override { return method_->sample_images(); }
  void persist(archive& state) override;

private:
  [[nodiscard]] bool has_rule() const noexcept { return options_.aggregation.rule != aggregation_rule::mean; }
  [[nodiscard]] delivery noisy(const delivery& in) const;
  void fold_absent();
  void fold_held();

  std::unique_ptr<server_half> method_;
  options options_;
  tensors_ref sent_;              // weights of the last broadcast
  round_id round_{};              // round of the last broadcast
  std::int64_t folded_ = 0;       // number of uploads in the open round
  std::uint64_t noisy_steps_ = 0; // number of rounds to which noise was added
  std::vector<delivery> held_;    // uploads of the open round; only used with a rule
};

} // namespace mneme
