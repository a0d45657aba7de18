// Finetune: FedAvg on the rows and classes of the current task only, a lower bound for continual learning.
#include "strategies/shared/averaging.hpp"
namespace mneme {
namespace {

/// The loss covers only the classes of the current task, so task boundaries must be known. Head rows of older classes
/// do not change.
class finetune final : public averaging_method {
protected:
  class_range covered_classes(const round_info& info) const override { return info.current_classes; }
};

const strategy_registration finetune_line{
    {.name = "finetune",
     .summary = "FedAvg whose loss covers the current task's classes only: the lower bound",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<finetune>(); }}};

} // namespace
} // namespace mneme
