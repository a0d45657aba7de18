/// adaptive_server: server optimizers Adam and Yogi for FedAvg, with the mean client update as gradient (S. J. Reddi et
/// al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2).
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// Update rule of the second moment v.
enum class second_moment : std::uint8_t {
  adam, ///< v = beta_2 v + (1 - beta_2) Delta^2
  yogi, ///< v = v - (1 - beta_2) Delta^2 sign(v - Delta^2)
};
/// Initial value of v.
enum class moment_start : std::uint8_t { tau_squared, zero };

/// Options of the server optimizer; names as in Algorithm 2.
struct adaptive_options {
  second_moment rule = second_moment::adam;
  moment_start start = moment_start::tau_squared;
  double rate = 0.1, beta_1 = 0.9, beta_2 = 0.99, tau = 1e-3; ///< eta, the betas, and tau, added to sqrt(v)
  bool corrected = false; ///< Step t = 1, 2, ... uses eta sqrt(1 - beta_2^(t + 1)) / (1 - beta_1^(t + 1)).
};

/// Let Delta be the update that averaging would make (synchronous, FedBuff or FedAsync). The server computes
///     m = beta_1 m + (1 - beta_1) Delta,  v by second_moment,  x = x + eta m / (sqrt(v) + tau).
/// Running statistics are only averaged.
class adaptive_server final : public averaging_server {
public:
  adaptive_server(const method_setup& setup, const adaptive_options& options);
  task<void> close_round(server_context& ctx, const round_info& info) override;
  void persist(archive& state) override;

private:
  [[nodiscard]] double rate() const;

  adaptive_options options_;
  at::Tensor parameters_;     // [P] 1 for parameters, 0 for running statistics
  at::Tensor first_, second_; // [P] m and v
  std::int64_t steps_ = 0;
};

/// FedAvg with an adaptive server: its keys and presets. Clients train as in FedAvg.
class adaptive_method : public averaging_method {
public:
  void keys(key_table& table) override;
  [[nodiscard]] std::vector<preset> presets() const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  explicit adaptive_method(second_moment rule) { options_.rule = rule; }

private:
  adaptive_options options_;
};

} // namespace mneme
