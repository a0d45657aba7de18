/// graph_view: reads an exported program backwards, from a result to the call that computes it.
#pragma once
#include "runtime/modules/exported_graph.hpp"
#include <map>
#include <stdexcept>
namespace mneme {

/// The reason why a call has no equivalent among mneme's layers.
class no_layer : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The program and `sizes` must outlive the view.
class graph_view {
public:
  using shape = std::vector<std::int64_t>;

  /// @param sizes [slots] shapes of all tensors for some number of rows; see exported_graph::sizes()
  graph_view(const exported_program& program, const std::vector<shape>& sizes);

  [[nodiscard]] const exported_program& program() const noexcept { return program_; }
  /// The call that computes a slot; null for the rows, parameters and buffers.
  [[nodiscard]] const exported_call* producer(std::int32_t slot) const;
  /// Shape of a slot, with the batch axis; empty for integers.
  [[nodiscard]] const shape& sizes(std::int32_t slot) const { return sizes_.at(static_cast<std::size_t>(slot)); }
  /// The parameter or buffer in a slot; null if the slot holds another value.
  [[nodiscard]] const module_graph::held_tensor* held(std::int32_t slot) const;

  /// Slots of a tensor argument or of a list of tensors; empty if the argument is None or a constant.
  [[nodiscard]] shape slots(const exported_call& call, const char* argument) const;
  /// Slot of a tensor argument; -1 if it is None or a constant.
  [[nodiscard]] std::int32_t slot(const exported_call& call, const char* argument) const;
  /// Slot of the first tensor argument; -1 if there is none.
  [[nodiscard]] std::int32_t first_slot(const exported_call& call) const;
  /// Parameter of a layer, such as "conv1.weight"; null if the argument is None. Throws no_layer if the argument is
  /// another value.
  [[nodiscard]] const module_graph::held_tensor* parameter(const exported_call& call, const char* argument) const;

  /// A constant argument; null if the operator has no such argument, or earlier calls compute it.
  [[nodiscard]] const c10::IValue* constant(const exported_call& call, const char* argument) const;
  /// A constant number; `otherwise` if it is None. Throws no_layer for values that earlier calls compute.
  [[nodiscard]] double number(const exported_call& call, const char* argument, double otherwise) const;
  [[nodiscard]] bool flag(const exported_call& call, const char* argument) const;
  /// A constant list of integers; empty if it is None. Throws no_layer for values that earlier calls compute.
  [[nodiscard]] shape integers(const exported_call& call, const char* argument) const;
  /// The number that all items of a list equal; `otherwise` for an empty list. Throws no_layer if items differ.
  [[nodiscard]] std::int64_t square(const exported_call& call, const char* argument, std::int64_t otherwise) const;

private:
  const exported_program& program_;
  const std::vector<shape>& sizes_;
  std::map<std::int32_t, const exported_call*> producers_;
  std::map<std::int32_t, std::size_t> held_;
};

/// Name of the operator without the underscore of in-place operators: "relu" for relu_.
[[nodiscard]] std::string plain_name(const exported_call& call);
/// Name of the layer with this parameter: "conv1" of "conv1.weight". Throws no_layer if the parameter has another name.
[[nodiscard]] std::string layer_with(const module_graph::held_tensor* parameter, const std::string& member = "weight");

} // namespace mneme
