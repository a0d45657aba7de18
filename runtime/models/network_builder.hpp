/// network_builder: builds a network layer by layer.
#pragma once
#include "runtime/models/network.hpp"
#include <functional>
namespace mneme {

/// Constants of a batch or group normalization, by default those of PyTorch.
struct norm_constants {
  double epsilon = 1e-5;
  double momentum = 0.1; ///< Weight of a step in an update of the running statistics.
};

/// A model's factory adds layers in order. A layer reads the value of the layer before it, unless set_cursor() has
/// selected an earlier value. The functions of image_layers.hpp and token_layers.hpp add layers of images and tokens.
class network_builder {
public:
  /// @param identity text that identifies the net's function ("mlp 784-200-100-10")
  /// @param shape channels, height, width of an input row
  network_builder(std::string identity, std::array<std::int64_t, 3> shape);
  /// Returns the net. Call once, after add_head() or end_headless().
  [[nodiscard]] std::shared_ptr<const network> build();

  /// Adds a fully connected layer and its activation. @param out number of outputs
  void add_linear(const std::string& name, std::int64_t out, activation after, bool biased = true);
  /// Adds two linear layers of the same input and concatenates their outputs: means and log standard deviations of a
  /// normal distribution.
  void add_normal(const std::string& mean_name, const std::string& log_deviation_name, std::int64_t width);
  /// @param slope factor of negative values, used by leaky
  void add_activation(activation kind, double slope = 0.01);
  /// @param groups number of channel groups for group normalization; 0: batch normalization
  void add_normalization(const std::string& name, std::int64_t groups, activation after,
                         const norm_constants& constants = {});
  /// @param rate probability that a value is dropped, in [0, 1)
  void add_dropout(double rate);
  /// Adds a layer that reads add_normal()'s output: it draws a sample in training and returns the means in evaluation
  /// (Kingma and Welling 2014).
  void add_sampling(double log_deviation_low, double log_deviation_high);
  /// Adds the value `other`, of the same shape, to the last value.
  void add_sum(network_place other, activation after);
  /// Makes the last value the net's features, in place of the head's input.
  void mark_features() { net_.features = last_; }
  /// Makes the last value an intermediate map that differentiable() returns. @pre features and head are not yet added
  void expose_map(const std::string& name) { net_.maps.push_back({name, last_}); }
  /// Ends the net with a head: its hidden layers "head1", "head2", ..., if any, then one output per class.
  void add_head(const std::string& name, std::int64_t classes, const head_shape& head = {});
  /// Ends the net with a linear head that each token reads: the net then has one prediction per token
  /// (row_wise_model::positions()). All classes share the head's parameters (parameter::whole). @pre values are tokens
  void add_token_head(const std::string& name, std::int64_t classes);
  /// Ends the net without a head: the last value is the features.
  void end_headless();
  /// Ends the net without a head: the last value, [K, B, classes], is both the features and the scores.
  void end_with_scores(std::int64_t classes);
  void set_note(std::string text) { net_.note = std::move(text); } ///< See network::note().

  [[nodiscard]] network_place cursor() const { return last_; }
  void set_cursor(network_place where) { last_ = where; }
  [[nodiscard]] image_shape shape_of(network_place value) const { return net_.shapes[value]; }
  [[nodiscard]] image_shape shape_here() const { return shape_of(last_); }
  [[nodiscard]] const std::string& identity() const { return net_.identity; }
  /// Sets whether parameters that are added later are frozen. @pre while parameters are frozen, only layers of tokens
  /// are added
  void freeze(bool frozen) { frozen_ = frozen; }
  [[nodiscard]] bool frozen() const { return frozen_; }

  // Members for functions that add a layer.
  /// Appends a parameter. @returns its offset within [P]
  std::int64_t add_parameter(parameter entry);
  [[nodiscard]] std::int64_t weight_count() const; ///< P of the layers added so far.
  /// Calls use(parameter&) for each parameter, which may change its name and its initial values.
  template <class Use>
  void for_each_parameter(const Use& use) {
    for (auto& entry : net_.layout)
      use(entry);
  }
  /// Adds running statistics of the layer that is added next. @param use receives their offsets within [P] once all
  /// parameters are placed
  void add_buffers(std::vector<parameter> entries, std::function<void(std::span<const std::int64_t>)> use);
  /// Adds a layer that reads the last value. @param out shape of its output
  void add_node(network_node entry, const image_shape& out, bool has_parameters);
  /// Returns the index of a new layer that draws random numbers.
  std::uint64_t add_drawing_layer() { return net_.drawing_layers++; }
  /// Adds `after` as a separate layer unless is_built_in(after).
  void add_unless_built_in(activation after);

private:
  void add_hidden_of_head(const std::vector<std::int64_t>& widths);
  void list_dense_layers();
  void place_buffers();

  network_parts net_;
  network_place last_ = 0;
  struct layer_buffers {
    std::size_t node = 0;            // index of the layer
    std::size_t first = 0, last = 0; // range in buffers_
    std::function<void(std::span<const std::int64_t>)> use{};
  };
  std::vector<parameter> buffers_; // running statistics, placed after all parameters
  std::vector<layer_buffers> buffer_owners_;
  bool frozen_ = false, in_head_ = false;
};

} // namespace mneme
