// DP-FedAvg: H. B. McMahan, D. Ramage, K. Talwar and L. Zhang, "Learning Differentially Private Recurrent Language
// Models", ICLR 2018, Algorithm 1 with FlatClip and the fixed-denominator estimator. Client k of a cohort C uploads
//     u_k = (w_k - w) min(1, S / |w_k - w|),
// and the server computes
//     w = w + (sum_k u_k + z S N(0, I)) / |C|,
// which hides whether a particular client took part (user-level differential privacy).
//
// Ours: FedAvg with the keys of [uploads]: S is uploads.clip_norm, z is uploads.noise_multiplier, and the defaults of
// this method set both to 1. Cohorts have a fixed size; the paper draws each client independently. Every client has
// weight 1. Running statistics are clipped and noised like weights. See docs/privacy.md for the accounting.
#include "strategies/shared/averaging.hpp"
namespace mneme::dp_fedavg_method {
namespace {

class dp_fedavg final : public averaging_method {
public:
  method_needs needs() const override {
    auto needed = averaging_method::needs();
    needed.defaults = "[uploads]\nclip_norm = 1.0\nnoise_multiplier = 1.0\nnoise = \"server\"\n"
                      "[strategy]\nweighting = \"uniform\"\n";
    return needed;
  }
};

const strategy_registration line{{.name = "dp-fedavg",
                                  .summary = "FedAvg with clipped uploads and Gaussian noise (McMahan et al. 2018)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<dp_fedavg>(); }}};

} // namespace
} // namespace mneme::dp_fedavg_method
