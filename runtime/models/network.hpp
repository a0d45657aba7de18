/// network: a model made of layers that read each other's results; the last one is its head.
#pragma once
#include "runtime/models/layer.hpp"
#include "runtime/models/row_wise_model.hpp"
#include "runtime/models/upsampling.hpp"
#include <optional>
namespace mneme {

class normalisation_layer;
struct proxy_head_shape;

/// Built by a model's factory, layer by layer, then const. A layer reads what was added last, unless the
/// factory goes back to an earlier place.
class network final : public row_wise_model {
public:
  /// @param identity what the net computes ("mlp 784-200-100-10")
  /// @param shape channels, height, width of one row of its inputs
  network(std::string identity, std::array<std::int64_t, 3> shape);

  using place = std::size_t;
  struct convolution {
    std::int64_t filters = 0, kernel = 3, stride = 1, padding = 0;
    bool bias = true;
    activation after = activation::none;
    bool he_normal = false; ///< Drawn from N(0, 2 / (kernel^2 filters)) (He et al. 2015, fan out), not as PyTorch does.
  };
  void add_convolution(const std::string& name, const convolution& layer);
  /// A convolution of every channel by itself, without bias; zeros around the image as TensorFlow's "same" has them, so
  /// that `stride` divides its size. @pre it is not the first layer
  void add_depthwise(const std::string& name, std::int64_t kernel, std::int64_t stride);
  void add_relu6();
  /// @param groups 0: batch normalisation
  void add_normalisation(const std::string& name, std::int64_t groups, activation after, double epsilon = 1e-5);
  /// @param slope leaky: factor of values below zero
  void add_activation(activation kind, double slope = 0.01);
  void add_max_pool(std::int64_t window, std::int64_t stride, std::int64_t padding);
  void add_mean_pool();
  void add_dropout(double rate);
  /// Every `stride`-th pixel, zeros as further channels.
  /// @param first where the given channels begin among `channels`
  void add_subsampling(std::int64_t stride, std::int64_t channels, std::int64_t first = 0);
  /// What has been added last as flat rows in the order of files. Linear layers read images as they lie, without it.
  void add_flat_rows();
  void add_linear(const std::string& name, std::int64_t out, activation after, bool biased = true);
  /// Two linear layers that read the same, their results side by side: means and log deviations of a normal.
  void add_normal(const std::string& mean_name, const std::string& log_deviation_name, std::int64_t width);
  /// What has been added last, plus what lies at `other`, of the same shape.
  void add_sum(place other, activation after);
  /// What has been added last, means and log deviations of a normal side by side, becomes a sample of it in training
  /// and the means in evaluation (Kingma and Welling 2014).
  void add_sampling(double log_deviation_low, double log_deviation_high);
  /// What has been added last are the net's features, instead of what its head reads.
  void mark_features() { features_ = last_; }
  /// What has been added last is one of the maps that differentiable() shows. @pre no feature and no head precedes it
  void mark_map(const std::string& name) { maps_.push_back({name, last_}); }

  // Generators.
  /// What has been added last, a flat row, as images that lie channel by channel.
  void add_images(std::int64_t channels, std::int64_t height, std::int64_t width);
  struct transposed_convolution {
    std::int64_t filters = 0, kernel = 4, stride = 2, padding = 1;
    std::int64_t further_px = 0; ///< PyTorch: output_padding.
    bool bias = true;
    activation after = activation::none;
  };
  /// @pre it is not the first layer
  void add_transposed_convolution(const std::string& name, const transposed_convolution& layer);
  void add_upsampling(std::int64_t height, std::int64_t width, upsampling kind);

  // Transformers: a place of tokens has the shape {tokens, 1, channels}.
  /// The images of the input in another size.
  void add_resize(std::int64_t height, std::int64_t width);
  /// A token per patch of the image, behind a class token, and what each position adds; under timm's names.
  void add_patch_embedding(std::int64_t patch, std::int64_t channels);
  void add_tokens_norm(const std::string& name, double epsilon = 1e-6);
  /// How a matrix is drawn: N(0, 0.02^2), U(-b, b) with b = 1 / sqrt(fan in), or all zeros. Biases are zeros.
  enum class initial : std::uint8_t { normal, uniform, zeros };
  struct tokens_linear {
    std::int64_t out = 0;
    activation after = activation::none;
    double scale = 1.0; ///< Factor on the outputs, before the activation.
    initial drawn = initial::normal;
  };
  void add_tokens_linear(const std::string& name, const tokens_linear& layer);
  /// Three linear layers that read the same, their results side by side, as add_attention() reads them.
  void add_attention_inputs(const std::array<std::string, 3>& names, std::int64_t channels);
  /// Attention over queries, keys and values side by side; results of the first `queries` tokens only.
  /// @param padding token of the net's inputs that is not looked at; -1: none
  void add_attention(std::int64_t heads, std::int64_t queries, std::int64_t padding = -1);
  void add_gelu();
  void add_first_token();
  void add_last_token();
  /// Rows of tokens as vectors. @pre it is the first layer, and inputs have one channel and one line
  void add_token_embedding(const std::string& name, std::int64_t vocabulary, std::int64_t channels);
  struct text_embedding {
    std::int64_t vocabulary = 0, channels = 0;
    std::int64_t positions = 0; ///< Rows of their table; not fewer than a row has tokens.
    std::int64_t types = 2;
    std::int64_t padding = -1; ///< Token whose vector is not trained; -1: none.
  };
  /// The same with a vector per position and one for the kind of text, under the names of the library transformers.
  void add_text_embedding(const std::string& prefix, const text_embedding& layer);
  /// Layer `number` of an LSTM under PyTorch's names; h of all tokens.
  void add_lstm(const std::string& name, std::int64_t number, std::int64_t hidden);
  /// Parameters added from now on are frozen, or not. @pre only layers of transformers are added while they are
  void freeze(bool frozen) { frozen_ = frozen; }

  /// Ends the net: one row per class, behind hidden layers "head1", "head2", ... where the head has some.
  void add_head(const std::string& name, std::int64_t classes, const head_shape& head = {});
  /// Ends the net without a head: what has been added last are its features.
  void end_headless();
  [[nodiscard]] place here() const { return last_; }
  void go_to(place where) { last_ = where; }
  [[nodiscard]] image_shape shape_here() const { return shapes_[last_]; }

  [[nodiscard]] const std::vector<parameter>& layout() const noexcept override { return layout_; }
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return feature_width_; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return classes_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::int64_t working_set(std::int64_t rows) const override;
  [[nodiscard]] bool mixes_rows() const noexcept override { return mixes_rows_; }
  [[nodiscard]] bool depends_on_row_count(class_range classes) const noexcept override;
  [[nodiscard]] const std::vector<dense_layer>* dense_layers() const noexcept override {
    return dense_.empty() ? nullptr : &dense_;
  }
  [[nodiscard]] bool trains_behind_features(const parameter_choice& trained) const override;
  [[nodiscard]] bool draws() const noexcept override { return drawing_layers_ > 0; }
  [[nodiscard]] activations forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                    tape* keep, const training_mode* training) const override;
  [[nodiscard]] activations forward_from_features(const at::Tensor& weights, const at::Tensor& features,
                                                  class_range classes, tape& keep,
                                                  const training_mode& training) const override {
    return forward_from(features_, weights, features, classes, &keep, &training);
  }
  void backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const override;
  [[nodiscard]] function_results differentiable(const at::Tensor& weights, const at::Tensor& inputs,
                                                class_range classes, const function_mode& mode) const override;
  [[nodiscard]] std::vector<std::string> maps() const override;

private:
  /// Value 0 is the input; node i makes value i + 1.
  struct node {
    std::unique_ptr<layer> operation{}; // null: a sum
    place from = 0;
    std::optional<place> other{};
    activation after = activation::none;                 // of a sum
    bool learns = false;                                 // whether gradients are wanted in it or before it
    std::size_t first_parameter = 0, last_parameter = 0; // its own within the layout, without buffers
    std::string name{};                                  // of a normalisation
  };
  struct map {
    std::string name{};
    place value = 0;
  };
  /// What a node does in a training.
  struct node_role {
    bool learns = false; // as in node, of what is trained
    bool trained = true; // in training mode
    bool fixed = false;  // its own parameters stay
  };
  using node_roles = std::vector<node_role>;
  [[nodiscard]] activations forward_from(place first, const at::Tensor& weights, const at::Tensor& inputs,
                                         class_range classes, tape* keep, const training_mode* training) const;
  void add_node(node entry, const image_shape& out, bool has_parameters);
  std::int64_t add_parameter(parameter entry);
  void add_unless_built_in(activation after);
  /// The weight of a dense layer that reads what was added last.
  [[nodiscard]] parameter dense_weight(const std::string& name, std::int64_t out) const;
  void place_buffers();
  void list_dense_layers();
  [[nodiscard]] std::int64_t width_of(place value, class_range classes) const;
  [[nodiscard]] node_roles roles_for(const parameter_choice& trained) const;
  void run_node(std::size_t i, const layer_pass& pass, tape& with) const;
  [[nodiscard]] function_results one_by_one(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                            const function_mode& mode) const;
  [[nodiscard]] at::Tensor value_of(const node& entry, const function_pass& pass,
                                    const std::vector<at::Tensor>& values) const;
  [[nodiscard]] at::Tensor map_of(const map& marked, const at::Tensor& value) const;
  [[nodiscard]] const map& map_named(const std::string& name) const;
  void add_map_gradients(tape& with) const;
  [[nodiscard]] at::Tensor gradient_passing(const layer_pass& pass, const layer_pass& still, tape& with,
                                            const node_roles& roles, const gradient_sink& sink) const;
  void run_sum(const node& entry, const at::Tensor& first, at::Tensor& out, const at::Tensor& second) const;
  void forget(tape& with, std::size_t done) const;
  void add_proxies(const proxy_head_shape& shape);
  void add_hidden_of_head(const std::vector<std::int64_t>& widths);
  void back_node(std::size_t i, const layer_pass& pass, tape& with, const node_roles& roles,
                 const gradient_sink& sink) const;
  void back_sum(std::size_t i, tape& with, const node_roles& roles) const;

  std::string identity_;
  std::vector<image_shape> shapes_;      // of values
  std::vector<std::size_t> last_reader_; // of values: the node
  std::vector<node> nodes_;
  place last_ = 0;
  place features_ = 0;                      // value that features are; 0 until it is known
  std::vector<parameter> layout_, buffers_; // running statistics lie behind all parameters
  std::vector<normalisation_layer*> normalisations_;
  std::vector<map> maps_;
  std::vector<dense_layer> dense_; // where there is nothing else
  std::uint64_t drawing_layers_ = 0;
  bool mixes_rows_ = false, frozen_ = false, in_head_ = false;
  std::int64_t feature_width_ = 0, classes_ = 0;
};

} // namespace mneme
