/// The key `activation` of nets that have one.
#pragma once
#include "runtime/models/dense.hpp"
#include "runtime/options/keys.hpp"
namespace mneme {

/// Binds `activation` to the function behind each layer but the head.
void activation_key(key_table& table, activation& chosen);
/// What a net's identity says of it: nothing of a ReLU, else " sigmoid".
[[nodiscard]] std::string in_identity(activation chosen);

} // namespace mneme
