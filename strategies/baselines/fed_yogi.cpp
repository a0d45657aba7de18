// FedYogi: S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2. Clients train as in FedAvg.
// From the clients' mean update Delta, the server computes
//     m = beta_1 m + (1 - beta_1) Delta,
//     v = v - (1 - beta_2) Delta^2 sign(v - Delta^2),
//     x = x + eta m / (sqrt(v) + tau).
//
// Flower's implementation starts with v = 0 instead of tau^2 (preset "flower").
//
// Ours: computes Algorithm 2 (preset "paper"). In asynchronous runs, Delta is the update of FedBuff or FedAsync.
// Running statistics are averaged without the Yogi step.
#include "strategies/baselines/adaptive_server.hpp"
namespace mneme::fed_yogi_method {
namespace {

class fed_yogi final : public adaptive_method {
public:
  fed_yogi() : adaptive_method(second_moment::yogi) {}
};

const strategy_registration line{{.name = "fed-yogi",
                                  .summary = "FedAvg with Yogi as the server's optimizer (Reddi et al. 2021)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_yogi>(); }}};

} // namespace
} // namespace mneme::fed_yogi_method
