#include "runtime/modules/script_graph.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/modules/checked_calls.hpp"
#include "runtime/modules/exported_archive.hpp"
#include "runtime/modules/graph_check.hpp"
#include <algorithm>
#include <caffe2/serialize/read_adapter_interface.h>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <set>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_graph.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/import.h>
namespace mneme {
namespace {

namespace jit = torch::jit;
using differences = std::vector<std::string>;

/// Lets LibTorch read an archive from memory.
class file_in_memory final : public caffe2::serialize::ReadAdapterInterface {
public:
  explicit file_in_memory(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::size_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t at, void* into, std::size_t count, const char* /*wanted*/) const override {
    if (at >= bytes_.size())
      return 0;
    const auto taken = std::min<std::size_t>(count, bytes_.size() - at);
    std::memcpy(into, bytes_.data() + at, taken);
    return taken;
  }

private:
  std::span<const std::uint8_t> bytes_;
};

/// Errors in the arguments and results of forward().
differences signature_differences(const jit::Module& module) {
  const auto forward = module.find_method("forward");
  if (!forward)
    return {"the module has no method forward"};
  const auto& schema = forward->function().getSchema();
  differences errors;
  std::string taken;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) // after self
    taken += (i > 1 ? ", " : "") + schema.arguments()[i].name() + ": " + schema.arguments()[i].type()->repr_str();
  if (schema.arguments().size() != 2 || schema.arguments()[1].type()->kind() != c10::TypeKind::TensorType)
    errors.push_back(
        fmt::format("forward takes ({}); expected one argument, a tensor of rows; wrap the net in a module "
                    "that takes only these",
                    taken));
  if (schema.returns().size() != 1 || schema.returns()[0].type()->kind() != c10::TypeKind::TensorType)
    errors.push_back(
        fmt::format("forward returns {}; expected one tensor, a row of numbers for each row; wrap the net in "
                    "a module that returns only this",
                    schema.returns().empty() ? "nothing" : schema.returns()[0].type()->repr_str()));
  return errors;
}

/// True if a flag disables the operator's randomness: dropout outside of training, attention with dropout_p = 0.
bool has_no_random_numbers(const jit::Node& node) {
  for (const auto* const flag : {"train", "training"})
    if (node.hasNamedInput(flag) && jit::constant_as<bool>(node.namedInput(flag)) == false)
      return true;
  return node.hasNamedInput("dropout_p") && jit::constant_as<double>(node.namedInput("dropout_p")) == 0.0;
}

/// The reason why a node's result does not depend on rows and tensors alone; "" if it does.
std::string refusal_of(const jit::Node& node) {
  const std::string name = node.kind().toQualString();
  if (name == "prim::SetAttr")
    return fmt::format("forward assigns to self.{}{}; a result must not depend on earlier calls",
                       node.s(c10::attr::name), place_of(node));
  if (node.isNondeterministic() && !has_no_random_numbers(node))
    return fmt::format("forward calls {}{}, which draws random numbers in evaluation, too; leave it out", name,
                       place_of(node));
  return "";
}

void add_errors(const jit::Block& block, std::set<std::string>& into) {
  for (const auto* node : block.nodes()) {
    if (auto reason = refusal_of(*node); !reason.empty())
      into.insert(std::move(reason));
    for (const auto* inner : node->blocks())
      add_errors(*inner, into);
  }
}

/// The member of `self` that a graph value reads. Returns nullopt if the value is computed.
std::optional<c10::IValue> member_of(const jit::Value& value, const jit::Graph& graph, const c10::IValue& self) {
  if (&value == graph.inputs()[0])
    return self;
  if (value.node()->kind() != c10::prim::GetAttr)
    return std::nullopt;
  const auto owner = member_of(*value.node()->input(), graph, self);
  return owner ? std::optional(owner->toObject()->getAttr(value.node()->s(c10::attr::name))) : std::nullopt;
}

/// Replaces reads of members by constants, for numbers, booleans, strings and lists of them.
void make_constants(jit::Block& block, jit::Graph& graph, const c10::IValue& self) {
  for (auto node = block.nodes().begin(); node != block.nodes().end(); ++node) {
    for (auto* inner : node->blocks())
      make_constants(*inner, graph, self);
    if (node->kind() != c10::prim::GetAttr)
      continue;
    const auto member = member_of(*node->output(), graph, self);
    if (!member || member->isTensor() || member->isModule())
      continue;
    const jit::WithInsertPoint here(*node);
    if (const auto constant = jit::tryInsertConstant(graph, *member))
      node->output()->replaceAllUsesWith(*constant);
  }
}

/// Replaces uninitialized tensors by zeros, and removes warnings.
void calm(jit::Block& block, jit::Graph& graph) {
  for (auto node = block.nodes().begin(); node != block.nodes().end(); ++node) {
    for (auto* inner : node->blocks())
      calm(*inner, graph);
    if (node->kind() == c10::aten::warn)
      node.destroyCurrent();
    else if (node->kind() == c10::aten::empty && node->inputs().size() == 6) { // zeros has no memory_format
      const jit::WithInsertPoint here(*node);
      auto* const zeros =
          graph.insertNode(graph.create(c10::aten::zeros, node->inputs().slice(0, node->inputs().size() - 1)));
      zeros->setSourceRange(node->sourceRange());
      zeros->output()->copyMetadata(node->output());
      node->output()->replaceAllUsesWith(zeros->output());
      node.destroyCurrent();
    }
  }
}

/// Moves constant tensors and constant device arguments to the device of the run. A traced module contains the device
/// of its tracing as a constant.
void move_constants(jit::Block& block, jit::Graph& graph, const at::Device& device) {
  for (auto node = block.nodes().begin(); node != block.nodes().end(); ++node) {
    for (auto* inner : node->blocks())
      move_constants(*inner, graph, device);
    const auto value = node->kind() == c10::prim::Constant ? jit::toIValue(node->output()) : std::nullopt;
    const bool moves = value && (value->isDevice() || (value->isTensor() && value->toTensor().defined()));
    if (!moves)
      continue;
    const jit::WithInsertPoint here(*node);
    auto* const moved = graph.insertConstant(value->isDevice() ? c10::IValue(device) : value->toTensor().to(device));
    node->output()->replaceAllUsesWith(moved);
    node.destroyCurrent();
  }
}

/// The graph of forward() with all calls inlined.
std::shared_ptr<jit::Graph> whole_graph(const jit::Module& module) {
  auto graph = module.get_method("forward").graph()->copy();
  jit::Inline(*graph);
  return graph;
}

/// Specializes the graph for evaluation mode: folds constants and removes branches of training mode.
/// @pre operator_errors() is empty @param checked false skips contract checks; for tests only
void fold(std::shared_ptr<jit::Graph>& graph, const jit::Module& module, const at::Device& device, bool checked) {
  calm(*graph->block(), *graph);
  if (!device.is_cpu())
    move_constants(*graph->block(), *graph, device);
  make_constants(*graph->block(), *graph, module._ivalue());
  if (checked)
    fold_checked_constants(graph);
  else
    jit::ConstantPropagation(graph);
  jit::EliminateDeadCode(graph);
}

/// The module's tensors in the order of PyTorch's state_dict: parameters, then buffers.
std::vector<script_graph::held_tensor> tensors_of(const jit::Module& module) {
  std::vector<script_graph::held_tensor> tensors;
  for (const auto& [name, value] : module.named_parameters())
    tensors.push_back({name, value, true});
  for (const auto& [name, value] : module.named_buffers())
    tensors.push_back({name, value, false});
  return tensors;
}

} // namespace

struct script_graph::compiled {
  jit::Code code;
  jit::Module module;              ///< Keeps the functions alive that error messages of the code refer to.
  std::vector<std::size_t> places; ///< For each argument after the rows, its index in the module's tensors.
};

tl::expected<script_graph, std::vector<std::string>> script_graph::read(std::span<const std::uint8_t> file,
                                                                        const at::Device& device, bool checked) {
  tl::expected<script_graph, differences> graph;
  if (auto reason = torch_error_of([&] { graph = read_by_torch(file, device, checked); }); !reason.empty())
    return tl::unexpected(differences{std::move(reason)});
  return graph;
}

tl::expected<script_graph, std::vector<std::string>>
script_graph::read_by_torch(std::span<const std::uint8_t> file, const at::Device& device, bool checked) {
  if (checked)
    check_number_operators();
  auto module = jit::load(std::make_shared<file_in_memory>(file), device, false);
  if (auto errors = signature_differences(module); !errors.empty())
    return tl::unexpected(std::move(errors));
  if (auto errors = checked ? module_errors(module) : differences{}; !errors.empty())
    return tl::unexpected(std::move(errors));
  module.eval();
  auto whole = whole_graph(module);
  if (auto errors = checked ? operator_errors(*whole) : differences{}; !errors.empty())
    return tl::unexpected(std::move(errors));
  fold(whole, module, device, checked);
  std::set<std::string> refusals;
  add_errors(*whole->block(), refusals);
  if (!refusals.empty())
    return tl::unexpected(differences(refusals.begin(), refusals.end()));
  const auto [graph, members] = jit::LowerGraph(*whole, module._ivalue());
  if (checked)
    insert_call_checks(*graph);
  auto loaded = with_tensors(module, graph, members);
  if (loaded)
    loaded->untrained_ = untrained_layers_of(*whole);
  return loaded;
}

tl::expected<script_graph, std::vector<std::string>>
script_graph::with_tensors(const jit::Module& module, const std::shared_ptr<jit::Graph>& graph,
                           const std::vector<c10::IValue>& members) {
  const auto known = tensors_of(module);
  std::map<const c10::TensorImpl*, std::size_t> places; // index in `known` of each tensor that forward() reads
  for (const auto& member : members)
    if (member.isTensor())
      places[member.toTensor().unsafeGetTensorImpl()] = known.size();
  script_graph result;
  for (const auto& held : known) {
    const auto place = places.find(held.value.unsafeGetTensorImpl());
    if (place == places.end() || place->second != known.size()) // unused, or tied to an earlier name
      continue;
    place->second = result.tensors_.size();
    result.tensors_.push_back({held.name, held.value.detach(), held.parameter, held.value.requires_grad()});
  }
  auto code = std::make_shared<compiled>(compiled{jit::Code(graph, "forward"), module, {}});
  for (const auto& member : members) {
    const auto place = member.isTensor() ? places.find(member.toTensor().unsafeGetTensorImpl()) : places.end();
    if (place == places.end() || place->second == known.size())
      return tl::unexpected(differences{fmt::format("forward reads a member of type {}; expected parameters, buffers, "
                                                    "numbers and modules",
                                                    member.type()->repr_str())});
    code->places.push_back(place->second);
  }
  result.code_ = std::move(code);
  if (module.hasattr("rows") && module.attr("rows").isIntList())
    result.own_rows_ = module.attr("rows").toIntVector();
  return result;
}

std::string script_graph::deprecation() const {
  return std::string("the module is TorchScript, which PyTorch has deprecated and which the next version of mneme does "
                     "not load; export it instead: ") +
         exported::export_line;
}

at::Tensor script_graph::run(const at::Tensor& rows, std::span<const at::Tensor> values,
                             const module_mode& /*mode*/) const {
  jit::Stack stack{rows};
  for (const auto place : code_->places)
    stack.emplace_back(values[place]);
  jit::InterpreterState(code_->code).run(stack);
  return stack.back().toTensor();
}

} // namespace mneme
