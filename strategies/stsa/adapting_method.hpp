/// adapting_method: the method whose task 1 adapts stsa's net in place of FedAvg (Table 3 of arXiv 2506.01327).
#pragma once
#include "runtime/method/strategy.hpp"
namespace mneme::stsa_method {

enum class adapter_kind : std::uint8_t { none, pilora, fed_cprompt };

struct adapter_choice {
  adapter_kind kind = adapter_kind::none;
  double rate = 0.0; ///< Learning rate of PILoRA's low-rank part; 0: that method's default.
};

/// The method, by its defaults but for the rate; null: FedAvg adapts the whole net.
[[nodiscard]] std::shared_ptr<strategy> adapting_method(const adapter_choice& choice);

} // namespace mneme::stsa_method
