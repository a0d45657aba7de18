// Split FedProx: FedProx (Li et al. 2020, eq. 2) on FedHAF's net. The backbone is frozen; module and head are averaged.
#include "strategies/shared/split_learning.hpp"
namespace mneme {
namespace {

class split_fedprox final : public split_method {
public:
  void keys(key_table& table) override {
    split_method::keys(table);
    table.number("mu", mu_, {.low = 0.0}, "Weight of the proximal term (Li et al. 2020, eq. 2); 0 is FedAvg.");
  }

protected:
  loss_ref objective() const override { return proximal_objective(mu_); }

private:
  double mu_ = 0.01;
};

const strategy_registration split_fedprox_line{
    {.name = "split-fedprox",
     .summary = "FedProx of a feature adjustment module and a head on a frozen backbone (FedHAF's baseline)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<split_fedprox>(); }}};

} // namespace
} // namespace mneme
