// FedProx: T. Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.
#include "strategies/shared/averaging.hpp"
namespace mneme {
namespace {

struct fedprox_options {
  double mu = 0.01;
};

/// Equation (2): every client minimizes F_k(w) + mu / 2 |w - w_t|^2, where w_t is the broadcast. The inexactness gamma
/// of the paper is not a key: training.epochs bounds the local training.
class fedprox final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("mu", options_.mu, {.low = 0.0}, "Weight of the proximal term (Li et al. 2020, eq. 2); 0 is FedAvg.");
  }

protected:
  loss_ref objective() const override { return proximal_objective(options_.mu); }

private:
  fedprox_options options_;
};

const strategy_registration fedprox_line{
    {.name = "fedprox",
     .summary = "FedAvg with a proximal term in the local objective (Li et al. 2020)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fedprox>(); }}};

} // namespace
} // namespace mneme
