/// adaptive_server: what the clients have moved on average is taken for a gradient, and the server steps by it as Adam
/// or Yogi would (S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2).
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// How the second moment v follows the squared movement.
enum class second_moment : std::uint8_t {
  adam, ///< v = beta_2 v + (1 - beta_2) Delta^2
  yogi, ///< v = v - (1 - beta_2) Delta^2 sign(v - Delta^2)
};
/// Where v begins.
enum class moment_start : std::uint8_t { tau_squared, zero };

struct adaptive_options {
  second_moment rule = second_moment::adam;
  moment_start start = moment_start::tau_squared;
  double rate = 0.1, beta_1 = 0.9, beta_2 = 0.99, tau = 1e-3; ///< eta, the two betas, and what is added to sqrt(v).
  bool corrected = false; ///< The rate of step t is eta sqrt(1 - beta_2^(t + 1)) / (1 - beta_1^(t + 1)), t from 1.
};

/// With Delta what averaging would have moved, by whatever rule (synchronous, FedBuff, FedAsync):
///     m = beta_1 m + (1 - beta_1) Delta,  v by the rule,  x = x + eta m / (sqrt(v) + tau).
/// Running statistics are averaged only.
class adaptive_server final : public averaging_server {
public:
  adaptive_server(const method_setup& setup, const adaptive_options& with);
  task<void> close_round(server_context& ctx, const round_place& place) override;
  void persist(archive& state) override;

private:
  [[nodiscard]] double rate() const;

  adaptive_options with_;
  at::Tensor parameters_;     // [P] 1, and 0 for running statistics
  at::Tensor first_, second_; // m and v [P]
  std::int64_t steps_ = 0;
};

/// FedAvg whose server is adaptive: its keys and presets. Clients do what those of FedAvg do.
class adaptive_method : public averaging_method {
public:
  void keys(key_table& table) override;
  [[nodiscard]] std::vector<preset> presets() const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  explicit adaptive_method(second_moment rule) { with_.rule = rule; }

private:
  adaptive_options with_;
};

} // namespace mneme
