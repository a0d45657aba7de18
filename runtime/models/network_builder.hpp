/// network_builder: a network in the making.
#pragma once
#include "runtime/models/network.hpp"
namespace mneme {

class normalisation_layer;

/// A model's factory adds layer by layer. A layer reads what was added last, unless the factory goes back to an earlier
/// place. Layers of images and of tokens are added by the functions of image_layers.hpp and token_layers.hpp.
class network_builder {
public:
  /// @param identity what the net computes ("mlp 784-200-100-10")
  /// @param shape channels, height, width of one row of its inputs
  network_builder(std::string identity, std::array<std::int64_t, 3> shape);
  /// The net. @pre it has been ended; nothing is added afterwards
  [[nodiscard]] std::shared_ptr<const network> build();

  void add_linear(const std::string& name, std::int64_t out, activation after, bool biased = true);
  /// Two linear layers that read the same, their results side by side: means and log deviations of a normal.
  void add_normal(const std::string& mean_name, const std::string& log_deviation_name, std::int64_t width);
  /// @param slope leaky: factor of values below zero
  void add_activation(activation kind, double slope = 0.01);
  /// @param groups 0: batch normalisation
  void add_normalisation(const std::string& name, std::int64_t groups, activation after, double epsilon = 1e-5);
  void add_dropout(double rate);
  /// What has been added last, means and log deviations of a normal side by side, becomes a sample of it in training
  /// and the means in evaluation (Kingma and Welling 2014).
  void add_sampling(double log_deviation_low, double log_deviation_high);
  /// What has been added last, plus what lies at `other`, of the same shape.
  void add_sum(network_place other, activation after);
  /// What has been added last are the net's features, instead of what its head reads.
  void mark_features() { net_.features = last_; }
  /// What has been added last is one of the maps that differentiable() shows. @pre no feature and no head precedes it
  void mark_map(const std::string& name) { net_.maps.push_back({name, last_}); }
  /// Ends the net: one row per class, behind hidden layers "head1", "head2", ... where the head has some.
  void add_head(const std::string& name, std::int64_t classes, const head_shape& head = {});
  /// Ends the net without a head: what has been added last are its features.
  void end_headless();

  [[nodiscard]] network_place here() const { return last_; }
  void go_to(network_place where) { last_ = where; }
  [[nodiscard]] image_shape shape_of(network_place value) const { return net_.shapes[value]; }
  [[nodiscard]] image_shape shape_here() const { return shape_of(last_); }
  [[nodiscard]] const std::string& identity() const { return net_.identity; }
  /// Parameters added from now on are frozen, or not. @pre only layers of tokens are added while they are
  void freeze(bool frozen) { frozen_ = frozen; }
  [[nodiscard]] bool frozen() const { return frozen_; }

  // For functions that add a layer.
  /// @returns where it begins in the weights
  std::int64_t add_parameter(parameter entry);
  [[nodiscard]] std::int64_t weight_count() const; ///< P so far
  /// A layer that reads what was added last. @param out the shape of its results
  void add_node(network_node entry, const image_shape& out, bool has_parameters);
  /// @param after of a layer that computes only some activations itself: is_built_in()
  void add_unless_built_in(activation after);

private:
  void add_hidden_of_head(const std::vector<std::int64_t>& widths);
  void list_dense_layers();
  void place_buffers();

  network_parts net_;
  network_place last_ = 0;
  std::vector<parameter> buffers_; // running statistics
  std::vector<normalisation_layer*> normalisations_;
  bool frozen_ = false, in_head_ = false;
};

} // namespace mneme
