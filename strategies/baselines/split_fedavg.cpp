// Split FedAvg: FedAvg (McMahan et al. 2017, Algorithm 1) on FedHAF's net. The backbone is frozen; module and head are
// averaged.
#include "strategies/shared/split_learning.hpp"
namespace mneme {
namespace {

class split_fedavg final : public split_method {};

const strategy_registration split_fedavg_line{
    {.name = "split-fedavg",
     .summary = "FedAvg of a feature adjustment module and a head on a frozen backbone (FedHAF's baseline)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<split_fedavg>(); }}};

} // namespace
} // namespace mneme
