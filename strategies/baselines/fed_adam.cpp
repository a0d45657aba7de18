// FedAdam: S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2. Clients train as in FedAvg.
// With the mean update Delta of the clients, the server computes
//     m = beta_1 m + (1 - beta_1) Delta,
//     v = beta_2 v + (1 - beta_2) Delta^2,
//     x = x + eta m / (sqrt(v) + tau).
//
// Flower's implementation starts with v = 0 instead of tau^2 and corrects the rate of the first steps: `preset =
// "flower"`.
//
// Ours: in asynchronous runs, Delta is the update of the rule (FedBuff, FedAsync). Running statistics are averaged
// only.
#include "strategies/baselines/adaptive_server.hpp"
namespace mneme::fed_adam_method {
namespace {

class fed_adam final : public adaptive_method {
public:
  fed_adam() : adaptive_method(second_moment::adam) {}
};

const strategy_registration line{{.name = "fed-adam",
                                  .summary = "FedAvg whose server steps as Adam does (Reddi et al. 2021)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_adam>(); }}};

} // namespace
} // namespace mneme::fed_adam_method
