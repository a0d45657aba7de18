#include "strategies/shared/linear_head.hpp"
#include <fmt/format.h>
namespace mneme {

diagnostics without_linear_head(const model& net, std::string_view reader) {
  int weights = 0, biases = 0, others = 0;
  bool has_hidden_layers = false;
  for (const auto& part : net.layout()) {
    if (!part.head)
      continue;
    const auto& shape = part.shape;
    has_hidden_layers = has_hidden_layers || part.whole;
    if (!part.whole && shape.size() == 2 && shape[0] >= net.classes() && shape[1] == net.feature_width())
      ++weights;
    else if (!part.whole && shape.size() == 1)
      ++biases;
    else
      ++others;
  }
  if (net.classes() == 0 || (weights == 1 && biases == 1 && others == 0))
    return {};
  const char* const key = has_hidden_layers ? "model.head_hidden" : "model.name";
  return {{key, fmt::format("{}: {} as one linear layer on all features, but the head of '{}' differs; expected {}",
                            key, reader, net.identity(),
                            has_hidden_layers ? "[]" : "a net with such a head, such as lenet, resnet18 or vit")}};
}

} // namespace mneme
