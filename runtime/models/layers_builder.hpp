/// layers_builder: adds the layers of model.layers to a net.
#pragma once
#include "runtime/models/foreign_layer.hpp"
#include "runtime/models/layer_specs.hpp"
#include "runtime/models/network_builder.hpp"
#include <map>
namespace mneme {

/// Kind of a layer's input.
enum class arriving : std::uint8_t { images, numbers, tokens, indices };

/// Adds layers to a net, up to the first error.
class layers_builder {
public:
  layers_builder(network_builder& net, arriving at_first, std::int64_t classes, std::int64_t known_tokens,
                 head_shape head)
      : net_(net), kind_(at_first), classes_(classes), known_tokens_(known_tokens), head_(std::move(head)) {}

  /// Adds `layers` to the layers that a text may name. @param layers must outlive add_all()
  void set_foreign(const std::map<std::string, foreign_layer>& layers) { foreign_ = &layers; }

  /// Returns the first error; "" on success.
  std::string add_all(const std::vector<layer_spec>& layers);

private:
  static constexpr std::int64_t units_max = 65'536, kernel_max = 15;
  static constexpr double norm_epsilon = norm_constants{}.epsilon;

  using adder = void (layers_builder::*)(const layer_spec&);
  struct known_layer {
    const char* usage;
    adder add;
  };
  static const std::map<std::string, known_layer>& known();

  // -- lists ----------------------------------------------------------------------------------------------------------

  void add_list(const std::vector<layer_spec>& layers, bool is_top);

  void add(const layer_spec& layer);

  void residual(const layer_spec& layer);

  void foreign(const layer_spec& layer, const foreign_layer& added);

  // -- layers ---------------------------------------------------------------------------------------------------------

  void convolution(const layer_spec& layer);

  void linear(const layer_spec& layer);

  void batch_norm(const layer_spec& layer);
  void group_norm(const layer_spec& layer);
  void layer_norm(const layer_spec& layer);

  void rms_norm(const layer_spec& layer);

  void function_of_values(const layer_spec& layer);
  void activation_function(const layer_spec& layer);

  void max_pool(const layer_spec& layer);
  void average_pool(const layer_spec& layer);
  void adaptive_pool(const layer_spec& layer);
  void global_mean(const layer_spec& layer);
  void dropout(const layer_spec&);
  void flatten(const layer_spec& layer);
  void subsample(const layer_spec& layer);

  // -- tokens ---------------------------------------------------------------------------------------------------------

  void embedding(const layer_spec& layer);
  void positions(const layer_spec& layer);
  void lstm(const layer_spec& layer);
  void mean_of_tokens(const layer_spec& layer);
  void patch_embedding(const layer_spec& layer);
  void attention(const layer_spec& layer);
  void one_token(const layer_spec& layer);

  // -- words ----------------------------------------------------------------------------------------------------------

  bool end_words();
  void refuse(const layer_spec& layer, const std::string& text);
  bool reads(const layer_spec& layer, arriving kind);
  bool not_tokens(const layer_spec& layer);
  /// Converts the net's input images from channels first to channels last.
  void make_channels_last();
  /// Converts images after `flatten` to flat rows, which all layers except linear ones require.
  void make_flat();
  [[nodiscard]] std::string arrived() const;

  network_builder& net_;
  arriving kind_;
  std::int64_t classes_, known_tokens_;
  head_shape head_;
  const std::map<std::string, foreign_layer>* foreign_ = nullptr;
  activation after_ = activation::none;
  bool is_last_ = false, ended_ = false;
  std::unique_ptr<layer_spec_reader> words_;
  std::string errors_;
};

} // namespace mneme
