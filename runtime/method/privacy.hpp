/// privacy: epsilon of a run with Gaussian noise, computed by a Renyi-DP accountant.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Renyi divergence at `order` of one step of the Gaussian mechanism on a Poisson sample (Mironov, Talwar and Zhang
/// 2019, "Renyi Differential Privacy of the Sampled Gaussian Mechanism", section 3.3), in nats.
/// @param rate probability that a client is sampled, in [0, 1]
/// @param noise_multiplier standard deviation of the noise over the sensitivity, > 0
/// @param order > 1
[[nodiscard]] double sampled_gaussian_rdp(double rate, double noise_multiplier, double order);

/// Epsilon at `delta` from the divergences `rdp` at privacy_orders() (Canonne, Kamath and Steinke 2020, proposition
/// 12). Returns the smallest epsilon over all orders. @param delta in (0, 1)
[[nodiscard]] double epsilon_of(const std::vector<double>& rdp, double delta);

/// The orders at which the accountant composes: the defaults of dp-accounting 0.6.
[[nodiscard]] const std::vector<double>& privacy_orders();

/// Epsilon of the first rounds of a run, for [uploads] with noise at the server or at the client.
///
/// Server: each round is one sampled Gaussian mechanism with rate cohort / clients, for neighboring populations that
/// differ in one client. The engine draws cohorts of a fixed size; as in DP-FedAvg's published accounting, they are
/// treated as Poisson samples. If clients are not always enrolled and reachable, the rate is 1.
/// Client: each upload is a Gaussian mechanism with sensitivity 2 clip_norm, and a client uploads in each round at most
/// once.
class privacy_accountant {
public:
  explicit privacy_accountant(const scenario& settings);
  /// Returns nullopt if the scenario has no noise. Also returns nullopt for tree noise, because its epsilon depends on
  /// how often a client takes part.
  [[nodiscard]] std::optional<double> epsilon(std::int64_t rounds) const;

private:
  double delta_;
  std::vector<double> rdp_{}; // divergences of one round; empty: epsilon() returns nullopt
};

} // namespace mneme
