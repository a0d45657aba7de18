/// adapting_method: selects the method that adapts STSA's net in the first task, in place of FedAvg (Table 3 of arXiv
/// 2506.01327).
#pragma once
#include "runtime/method/strategy.hpp"
namespace mneme::stsa_method {

/// The method that adapts the net; `none` selects FedAvg.
enum class adapter_kind : std::uint8_t { none, pilora, fed_cprompt };

struct adapter_choice {
  adapter_kind kind = adapter_kind::none;
  double rate = 0.0; ///< Learning rate of PILoRA's LoRA; 0: PILoRA's default.
};

/// Returns the method with its default options, except for the rate. Returns null if FedAvg adapts the whole net.
[[nodiscard]] std::shared_ptr<strategy> adapting_method(const adapter_choice& choice);

} // namespace mneme::stsa_method
