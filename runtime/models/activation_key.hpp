/// activation_key: the scenario key `activation` of nets that support several activation functions.
#pragma once
#include "runtime/models/dense.hpp"
#include "runtime/options/keys.hpp"
namespace mneme {

/// Declares the key `activation`, the function after every layer except the head, and binds it to `chosen`.
void activation_key(key_table& table, activation& chosen);
/// Suffix of a net's identity: "" for ReLU, otherwise a space and the key's word, such as " sigmoid".
[[nodiscard]] std::string in_identity(activation chosen);

} // namespace mneme
