// Oracle of FedHAF's comparison: a single learner with the rows of all tasks so far. It trains module and head on the
// same frozen backbone, for as many epochs and rounds as the clients.
#include "strategies/shared/split_learning.hpp"
namespace mneme {
namespace {

class split_oracle final : public split_method {
public:
  method_needs needs() const override {
    auto needed = split_method::needs();
    needed.rows = row_visibility::centralized;
    return needed;
  }
};

const strategy_registration split_oracle_line{
    {.name = "split-oracle",
     .summary = "centralized training of module and head on the rows of all tasks so far: FedHAF's upper bound",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<split_oracle>(); }}};

} // namespace
} // namespace mneme
