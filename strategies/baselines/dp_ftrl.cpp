// DP-FTRL: P. Kairouz, B. McMahan, S. Song, O. Thakkar, A. Thakurta and Z. Xu, "Practical and Private (Deep) Learning
// without Sampling or Shuffling", ICML 2021, Algorithm 1 in its federated form (section 5.2). Clients upload clipped
// updates u_k as in DP-FedAvg. With the sum s_t of the mean updates of rounds 1 to t, the server computes
//     w_t = w_0 + s_t + TreeNoise_t / |C|,
// where TreeNoise_t is the sum of the noise of at most log2(t) + 1 nodes of a binary tree over the rounds, each
// N(0, z^2 S^2 I). So the noise of a sum of rounds grows with log t instead of t, and the guarantee does not depend on
// the sampling of clients. With momentum b (section 3.2, DP-FTRLM) the model moves by v_t = b v_{t-1} + d_t, where d_t
// is the noisy mean update of round t.
//
// Ours: uses the plain estimator of a prefix sum; the paper also has a variance-reduced one. One tree covers the whole
// run. The noise of a tree node is drawn from a key, so no noise is stored. S is uploads.clip_norm and z is
// uploads.noise_multiplier.
#include "strategies/shared/averaging.hpp"
#include <ATen/ATen.h>
namespace mneme::dp_ftrl_method {
namespace {

class dp_ftrl_server final : public averaging_server {
public:
  dp_ftrl_server(const method_setup& setup, double momentum)
      : averaging_server(setup), momentum_(momentum), velocity_(at::zeros_like(weights())) {}
  task<void> close_round(server_context&, const round_info&) override {
    const auto before = weights();
    average();
    if (momentum_ > 0.0) {
      const auto mean = weights();
      velocity_ = velocity_.to(mean.device()) * momentum_ + (mean - before.to(mean.device()));
      set_weights(before.to(mean.device()) + velocity_);
    }
    co_return;
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state.frozen(velocity_);
  }

private:
  double momentum_;
  at::Tensor velocity_; // v [P]
};

class dp_ftrl final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("server_momentum", momentum_, {.low = 0.0, .high = 0.999},
                 "Momentum of the server's step; 0: the step without momentum.");
  }
  method_needs needs() const override {
    auto needed = averaging_method::needs();
    needed.defaults = "[uploads]\nclip_norm = 1.0\nnoise_multiplier = 1.0\nnoise = \"tree\"\n"
                      "[strategy]\nweighting = \"uniform\"\n";
    return needed;
  }
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<dp_ftrl_server>(setup(), momentum_);
  }

private:
  double momentum_ = 0.0;
};

const strategy_registration line{
    {.name = "dp-ftrl",
     .summary = "FedAvg with the noise of a tree over rounds (DP-FTRL, Kairouz et al. 2021)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<dp_ftrl>(); }}};

} // namespace
} // namespace mneme::dp_ftrl_method
