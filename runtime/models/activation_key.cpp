#include "runtime/models/activation_key.hpp"
namespace mneme {
namespace {

const std::vector<std::pair<std::string, activation>> words{
    {"relu", activation::relu}, {"leaky", activation::leaky}, {"sigmoid", activation::sigmoid},
    {"tanh", activation::tanh}, {"silu", activation::silu},   {"none", activation::none}};

} // namespace

void activation_key(key_table& table, activation& chosen) {
  table.choice("activation", chosen, words,
               "Activation after each layer except the head; leaky: slope 0.01 below zero; silu: x sigmoid(x).");
}

std::string in_identity(activation chosen) {
  for (const auto& [word, kind] : words)
    if (kind == chosen && kind != activation::relu)
      return " " + word;
  return {};
}

} // namespace mneme
