/// upload_pipeline: the steps of [uploads], [aggregation] and clients.attack between a method's client and server half.
#pragma once
#include "runtime/data/task_stream.hpp"
#include "runtime/method/strategy.hpp"
#include <memory>
#include <vector>
namespace mneme {

/// True if the scenario changes uploads or their aggregation. Otherwise a run uses its method without a pipeline.
[[nodiscard]] bool has_upload_pipeline(const scenario& settings);

/// Ids of the attackers, ascending: round(clients.attackers * clients.count) clients, drawn once per run.
[[nodiscard]] std::vector<std::uint32_t> attackers_of(const scenario& settings);

/// Purposes of the random streams of uploads. Their numbers lie between the purposes of the engine
/// (runtime/base/rng.hpp) and the purposes of methods.
enum class upload_purpose : std::uint32_t { attackers = 0x8000, attack_noise, client_noise, server_noise, rounding };

/// Name of the client memory that holds the error of compression, float32, one entry per uploaded weight.
inline constexpr const char* upload_error_name = "uploads.error";

/// Wraps a method. Let w be the weights of a broadcast and w_k those of client k's upload. Clients compute
///     u = w_k - w                                       sign-flip: -scale u; noise: scale z instead
///     u = u min(1, clip_norm / |u|)                     clipping (McMahan et al. 2018, FlatClip)
///     u = u + noise_multiplier clip_norm z              noise = "client"
///     p = u + e,  c = quantise(top_k(p)),  e = p - c    error feedback (Karimireddy et al. 2019, algorithm 2)
/// and upload w + c, in float64 with one cast to float32 at the end. z is standard normal. An upload that no step
/// changes keeps its bits. The server adds the noise of noise = "server" or "tree" once per round to the sum of
/// updates, and divides by the full cohort: an absent client counts as an update of 0 (the fixed-denominator estimator
/// of McMahan et al. 2018, section 2.1). A rule of [aggregation] replaces the weights of all uploads of a round with
/// its result, so that every mean of these uploads equals the result.
///
/// The server keeps the uploads of a round in memory if a rule is not the mean.
class upload_pipeline final : public strategy {
public:
  /// @param method must be prepared, and its server must average weights (strategy::uploads) @param settings must have
  /// passed their checks
  upload_pipeline(std::shared_ptr<const strategy> method, const scenario& settings, const task_stream& tasks);

  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] upload_content uploads() const override { return method_->uploads(); }
  [[nodiscard]] bool uploads_models() const override { return method_->uploads_models(); }
  /// Does nothing: the method is prepared already.
  void prepare(const method_setup&) override {}
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  task<client_result> client_observe(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] std::unique_ptr<proxy_half> make_proxy() const override { return method_->make_proxy(); }
  [[nodiscard]] const std::vector<parameter>& wire_layout(const model& net) const override {
    return method_->wire_layout(net);
  }

private:
  [[nodiscard]] bool attacks(client_id client) const;
  [[nodiscard]] assignment inner_assignment(const client_context& ctx) const;
  [[nodiscard]] client_result processed(const client_context& ctx, const broadcast& in, client_result result) const;
  void attack(std::vector<double>& update, const rng_key& key) const;
  void compress(std::vector<double>& update, const rng_key& key) const;

  std::shared_ptr<const strategy> method_;
  std::uint64_t seed_ = 0;
  uploads_section uploads_;
  aggregation_section aggregation_;
  clients_section clients_;
  std::int64_t cohort_ = 0;
  std::vector<std::uint32_t> attackers_;   // ascending
  std::shared_ptr<const dataset> flipped_; // training rows with flipped labels; null without this attack
};

} // namespace mneme
