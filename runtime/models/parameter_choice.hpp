/// parameter_choice: the set of a net's parameters that a training changes.
#pragma once
#include "runtime/base/class_range.hpp"
#include <string>
#include <vector>
namespace mneme {

class model;
struct parameter;

/// A layer without chosen parameters is in evaluation mode: its running statistics do not change, and it draws no
/// random numbers. A layer without parameters has the mode of the layer that it reads.
class parameter_choice {
public:
  /// All parameters that are not frozen. No choice contains frozen parameters.
  parameter_choice() = default;
  /// The head with its hidden layers, its rows and its scale.
  [[nodiscard]] static parameter_choice head_of(const model& net);
  /// All parameters except those of the head.
  [[nodiscard]] static parameter_choice body_of(const model& net);
  /// Layers by name: "fc1", or "layer4" for "layer4.0.conv1" and all other layers whose name begins with "layer4.".
  /// Throws std::invalid_argument if a name matches no layer that can be trained. Excludes held parameters
  /// (parameter::held).
  [[nodiscard]] static parameter_choice layers_of(const model& net, const std::vector<std::string>& names);

  /// Name of the layer that contains a parameter: "layer1.0.bn1" for "layer1.0.bn1.running_mean".
  [[nodiscard]] static std::string layer_of(const parameter& entry);
  /// This choice plus the running statistics of all layers, with every layer in training mode.
  [[nodiscard]] parameter_choice with_statistics(const model& net) const;
  [[nodiscard]] bool updates_running_stats() const noexcept { return statistics_; }

  /// True for the default choice, which contains all parameters.
  [[nodiscard]] bool whole() const noexcept { return chosen_.empty(); }
  /// True if training changes the parameter at `index` of the layout, by gradients or as running statistics.
  [[nodiscard]] bool changes(const model& net, std::size_t index) const;
  /// True if training changes one of the parameters first .. last - 1. @pre not whole()
  [[nodiscard]] bool changes_any(std::size_t first, std::size_t last) const;
  /// True if a row's results in training depend on the other rows of its step. Such steps are never padded.
  [[nodiscard]] bool couples_batch_rows(const model& net) const;

private:
  explicit parameter_choice(std::vector<bool> chosen) : chosen_(std::move(chosen)) {}

  std::vector<bool> chosen_; // one entry per parameter of the layout; empty: all parameters
  bool statistics_ = false;  // true: the running statistics of all layers are chosen
};

/// True if the net has held parameters (parameter::held). Backward passes may write gradients for them, so a gradient
/// sink must not be the weights themselves.
[[nodiscard]] bool has_held_parameters(const model& net);

/// A contiguous part of [P] with one learning rate.
struct segment {
  std::int64_t offset = 0, size = 0;
  double rate = 1.0; ///< Factor of the learning rate.
};
/// Parts of [P] that gradients may change, in ascending order. @param classes classes of the loss; empty: the loss
/// reads features
[[nodiscard]] std::vector<segment> trained_segments(const model& net, class_range classes,
                                                    const parameter_choice& trained = {});

/// Factor of a layer's learning rate. `layer` is a name as in parameter_choice::layers_of().
struct layer_rate {
  std::string layer{};
  double factor = 1.0;
  bool operator==(const layer_rate&) const = default;
};
/// Returns the segments, split where the learning rate changes.
[[nodiscard]] std::vector<segment> with_rates(const std::vector<segment>& segments, const model& net,
                                              const std::vector<layer_rate>& rates);

} // namespace mneme
