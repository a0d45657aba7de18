#include "runtime/modules/untrained_layers.hpp"
#include <fmt/format.h>
#include <string_view>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
namespace mneme {
namespace {

namespace jit = torch::jit;

bool drops(const jit::Node& node) {
  const std::string_view name = node.kind().toQualString();
  const bool is_dropout = name == "aten::dropout" || name == "aten::dropout_" || name == "aten::feature_dropout" ||
                          name == "aten::feature_dropout_" || name == "aten::alpha_dropout" ||
                          name == "aten::alpha_dropout_" || name == "aten::feature_alpha_dropout";
  return is_dropout && !(node.hasNamedInput("p") && jit::constant_as<double>(node.namedInput("p")) == 0.0);
}

bool is_batch_norm(const jit::Node& node) {
  const std::string_view name = node.kind().toQualString();
  return name == "aten::batch_norm" || name == "aten::native_batch_norm" || name == "aten::cudnn_batch_norm";
}

bool is_weight(const jit::Node& node) {
  const auto value = node.kind() == c10::prim::Constant ? jit::toIValue(node.output()) : std::nullopt;
  return value && value->isTensor() && value->toTensor().defined() && value->toTensor().is_floating_point() &&
         value->toTensor().dim() > 0;
}

void add_layers(const jit::Block& block, untrained_layers& to) {
  for (const auto* node : block.nodes()) {
    to.dropouts += drops(*node) ? 1 : 0;
    to.batch_norms += is_batch_norm(*node) ? 1 : 0;
    to.constant_tensors += is_weight(*node) ? 1 : 0;
    for (const auto* inner : node->blocks())
      add_layers(*inner, to);
  }
}

std::string counted(std::int64_t count, const char* single, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? single : several);
}

} // namespace

untrained_layers untrained_layers_of(const torch::jit::Graph& graph) {
  untrained_layers layers;
  add_layers(*graph.block(), layers);
  return layers;
}

std::string untrained_text(const untrained_layers& layers) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (layers.dropouts > 0)
    add(counted(layers.dropouts, "dropout drops nothing", "dropouts drop nothing"));
  if (layers.batch_norms > 0)
    add(counted(layers.batch_norms, "batch normalisation keeps the running statistics of the file",
                "batch normalisations keep the running statistics of the file"));
  if (layers.constant_tensors > 0)
    add(counted(layers.constant_tensors, "frozen tensor is part of the code and is not trained",
                "frozen tensors are part of the code and are not trained"));
  if (text.empty())
    return text;
  return "a TorchScript module is in evaluation mode while it is trained: " + text +
         " (docs/modules.md); expected an exported program (.pt2) where that matters, and no torch.jit.freeze";
}

} // namespace mneme
