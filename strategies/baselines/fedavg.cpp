// FedAvg: B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
#include "strategies/shared/averaging.hpp"
namespace mneme {
namespace {

/// Algorithm 1: local SGD from the global model, and the mean of the uploads, weighted by rows. In a continual run, the
/// loss covers the classes of all tasks opened so far, without any protection against forgetting.
class fedavg final : public averaging_method {};

const strategy_registration fedavg_line{
    {.name = "fedavg",
     .summary = "Federated averaging (McMahan et al. 2017)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fedavg>(); }}};

} // namespace
} // namespace mneme
