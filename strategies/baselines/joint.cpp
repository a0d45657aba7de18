// Joint: FedAvg on the rows of all tasks so far, an upper bound for continual learning.
#include "strategies/shared/averaging.hpp"
namespace mneme {
namespace {

struct joint_options {
  bool centralized = false;
};

/// In task t, each client trains on its rows of tasks 1 to t. `centralized` gives all rows to one client, so that a
/// round is ordinary training without a federation.
class joint final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.flag("centralised", options_.centralized, "One client holds all rows: centralized training.");
  }
  method_needs needs() const override {
    auto needed = averaging_method::needs();
    needed.rows = options_.centralized ? row_visibility::centralized : row_visibility::cumulative;
    return needed;
  }

private:
  joint_options options_;
};

const strategy_registration joint_line{
    {.name = "joint",
     .summary = "FedAvg on the rows of all tasks so far: the upper bound",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<joint>(); }}};

} // namespace
} // namespace mneme
