/// network_parts: the structure of a network, as network_builder creates it.
#pragma once
#include "runtime/models/layer.hpp"
#include <optional>
namespace mneme {

/// Index of a value in a net: 0 is the input, and node i computes value i + 1.
using network_place = std::size_t;

/// A layer that reads one value, or a sum of two values.
struct network_node {
  std::shared_ptr<layer> operation{}; // null: the node is a sum. Shared with copies of the net; const once the net is
                                      // built.
  network_place from = 0;
  std::optional<network_place> other{};
  activation after = activation::none;                 // activation after a sum
  bool learns = false;                                 // true: the node, or one that it depends on, has parameters
  std::size_t first_parameter = 0, last_parameter = 0; // range of its parameters in the layout, without buffers
  std::size_t first_buffer = 0, last_buffer = 0;       // range of its running statistics in the layout
  std::string name{};                                  // set only for normalizations
  bool statistics_held = false;                        // true: running statistics are frozen, so the layer is always in
                                                       // evaluation mode
};

/// An intermediate value that differentiable() returns.
struct network_map {
  std::string name{};
  network_place value = 0;
};

/// Computes a node by operators of autograd. @param other the second term of a sum
[[nodiscard]] at::Tensor function_of_node(const network_node& node, const function_pass& pass, const at::Tensor& in,
                                          const at::Tensor& other);

/// Nodes, values and parameters of a network.
struct network_parts {
  std::string identity{};
  std::string note{};                     // see network::note()
  std::vector<image_shape> shapes{};      // shape of each value
  std::vector<std::size_t> last_reader{}; // for each value: the last node that reads it
  std::vector<network_node> nodes{};
  network_place features = 0;       // the value that is the features; 0: the input, or not set yet
  std::vector<parameter> layout{};  // parameters first, then running statistics
  std::vector<network_map> maps{};  // every map precedes the features
  std::vector<dense_layer> dense{}; // all layers of the net if all are fully connected; otherwise empty
  std::uint64_t drawing_layers = 0; // number of dropout and sampling layers
  bool couples_batch_rows = false;  // true: the net has batch normalization
  bool has_held = false;            // true: the net has parameters with parameter::held
  std::int64_t feature_width = 0, classes = 0;
  std::int64_t positions = 1; // predictions per row
};

/// Consecutive nodes that are computed as one function. Either all of them precede the features, or all follow them.
struct function_run {
  std::size_t first = 0, last = 0;                     ///< Nodes first .. last - 1.
  std::size_t first_parameter = 0, last_parameter = 0; ///< Range of its parameters in the layout.
  std::vector<std::size_t> buffers{};                  ///< Its running statistics, as indices of the layout.
  std::vector<std::int64_t> offsets{};                 ///< Offsets of parameters and buffers within [P].
  std::vector<network_place> reads{};                  ///< Inputs: values of earlier nodes.
  std::vector<network_place> shows{};                  ///< Outputs: values that later nodes or the caller reads.
  std::vector<network_place> maps{};                   ///< Values that are outputs only in passes that request these
                                                       ///< maps.
  std::size_t slot = 0; ///< Index of the run's first tensor in a tape, among the tensors of all runs.
  [[nodiscard]] std::size_t tensors() const {
    return last_parameter - first_parameter + reads.size() + shows.size() + maps.size();
  }
};
/// Finds the longest runs that begin and end with a function layer. Between these, a run may contain sums and kernel
/// layers with joins_functions().
[[nodiscard]] std::vector<function_run> function_runs(const network_parts& net, bool on_cpu);

/// Returns a tensor of these sizes, made from the smallest of the tape's spare tensors that is large enough. If none is
/// large enough, a new tensor replaces the largest spare tensor, so that memory does not accumulate as steps grow.
[[nodiscard]] at::Tensor acquire_buffer(tape& from, at::IntArrayRef sizes, const at::Tensor& like);
/// Gives a tensor's memory back to the tape's spare memory, unless another tensor shares it.
void release_buffer(tape& to, at::Tensor tensor);

} // namespace mneme
