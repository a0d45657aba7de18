/// network_parts: what a network consists of, as network_builder leaves it.
#pragma once
#include "runtime/models/layer.hpp"
#include <optional>
namespace mneme {

/// A value of a net: 0 is its input, node i makes value i + 1.
using network_place = std::size_t;

/// A layer that reads a value, or a sum of two.
struct network_node {
  std::shared_ptr<layer> operation{}; // null: a sum. Shared with copies of the net; const once the net is built.
  network_place from = 0;
  std::optional<network_place> other{};
  activation after = activation::none;                 // of a sum
  bool learns = false;                                 // whether gradients are wanted in it or before it
  std::size_t first_parameter = 0, last_parameter = 0; // its own within the layout, without buffers
  std::string name{};                                  // of a normalisation
  bool statistics_held = false;                        // running statistics are frozen: always in evaluation mode
};

/// A value that differentiable() shows.
struct network_map {
  std::string name{};
  network_place value = 0;
};

/// The function of a node. @param other the second term of a sum
[[nodiscard]] at::Tensor function_of_node(const network_node& node, const function_pass& pass, const at::Tensor& in,
                                          const at::Tensor& other);

struct network_parts {
  std::string identity{};
  std::vector<image_shape> shapes{};      // of values
  std::vector<std::size_t> last_reader{}; // of values: the node
  std::vector<network_node> nodes{};
  network_place features = 0;       // value that features are; 0: the input, or not known yet
  std::vector<parameter> layout{};  // running statistics lie behind all parameters
  std::vector<network_map> maps{};  // none lies behind the features
  std::vector<dense_layer> dense{}; // where there is nothing else
  std::uint64_t drawing_layers = 0; // dropout and sampling
  bool mixes_rows = false;          // batch normalisation
  bool has_held = false;            // some parameters are parameter::held
  std::int64_t feature_width = 0, classes = 0;
};

/// Consecutive nodes that are computed as one function, all before the features or all after them.
struct function_run {
  std::size_t first = 0, last = 0;                     ///< Nodes first .. last - 1.
  std::size_t first_parameter = 0, last_parameter = 0; ///< Of the layout.
  std::vector<std::int64_t> offsets{};                 ///< Of these parameters within [P].
  std::vector<network_place> reads{};                  ///< Inputs: values of earlier nodes.
  std::vector<network_place> shows{};                  ///< Outputs: values that later nodes or the caller read.
  std::vector<network_place> maps{};                   ///< Outputs only in passes that ask for these maps.
  std::size_t slot = 0;                                ///< Of its first tensor in a tape, among those of all runs.
  [[nodiscard]] std::size_t tensors() const {
    return last_parameter - first_parameter + reads.size() + shows.size() + maps.size();
  }
};
/// Runs that begin and end with a function layer. Sums, and kernel layers with joins_functions(), may lie between.
[[nodiscard]] std::vector<function_run> function_runs(const network_parts& net, bool on_cpu);

/// A tensor of these sizes from the tape's spare memory: the smallest that is large enough. Where none is, a new one
/// takes the place of the largest, so that memory does not pile up as steps grow.
[[nodiscard]] at::Tensor acquire_buffer(tape& from, at::IntArrayRef sizes, const at::Tensor& like);
/// Frees memory that has no other holder, for acquire_buffer().
void release_buffer(tape& to, at::Tensor tensor);

} // namespace mneme
