/// parameter_choice: which parameters of a net a training changes.
#pragma once
#include "runtime/base/class_range.hpp"
#include <string>
#include <vector>
namespace mneme {

class model;

/// Layers of which nothing is chosen are in evaluation mode: their running statistics stay as they are, and what they
/// drop or draw in training they do not. A layer without parameters goes with the one that it reads.
class parameter_choice {
public:
  /// All that are not frozen. Frozen parameters are in no choice.
  parameter_choice() = default;
  /// The head: its rows and scale, and its hidden layers.
  [[nodiscard]] static parameter_choice head_of(const model& net);
  /// All but the head.
  [[nodiscard]] static parameter_choice body_of(const model& net);
  /// Layers by name: "fc1", or "layer4" for "layer4.0.conv1" and all others behind the same dot. Throws
  /// std::invalid_argument where a name is that of no layer which can be trained; layers that model.frozen holds are
  /// left out.
  [[nodiscard]] static parameter_choice layers_of(const model& net, const std::vector<std::string>& names);

  /// The same, with the running statistics of all layers besides: every layer is in training mode.
  [[nodiscard]] parameter_choice with_statistics(const model& net) const;
  [[nodiscard]] bool moves_statistics() const noexcept { return statistics_; }

  /// True of the default: nothing was left out.
  [[nodiscard]] bool whole() const noexcept { return chosen_.empty(); }
  /// True if training changes the parameter at `index` of the layout, by gradients or by running statistics.
  [[nodiscard]] bool changes(const model& net, std::size_t index) const;
  /// True if it changes one of the parameters from `first` to before `last`. @pre not whole()
  [[nodiscard]] bool changes_any(std::size_t first, std::size_t last) const;
  /// True if results of a row depend on the others of its step in training: such steps are never padded.
  [[nodiscard]] bool mixes_rows(const model& net) const;

private:
  explicit parameter_choice(std::vector<bool> chosen) : chosen_(std::move(chosen)) {}

  std::vector<bool> chosen_; // by the layout; empty: all
  bool statistics_ = false;  // all of them, whatever else is chosen
};

/// True if parameters of the net are held (parameter::held). Backward passes may write gradients in their places, so no
/// sink may be the weights themselves.
[[nodiscard]] bool has_held_parameters(const model& net);

/// Contiguous pieces of [P] that gradients may change, given the classes of the loss; of none, the loss is on features.
struct segment {
  std::int64_t offset = 0, size = 0;
  double rate = 1.0; ///< What the learning rate is multiplied by here.
};
[[nodiscard]] std::vector<segment> trained_segments(const model& net, class_range classes,
                                                    const parameter_choice& trained = {});

/// A layer, by name as parameter_choice::layers_of() takes it, whose learning rate is another one, this times the rate.
struct layer_rate {
  std::string layer{};
  double factor = 1.0;
  bool operator==(const layer_rate&) const = default;
};
/// The segments, cut where layers with rates of their own begin and end.
[[nodiscard]] std::vector<segment> with_rates(const std::vector<segment>& segments, const model& net,
                                              const std::vector<layer_rate>& rates);

} // namespace mneme
