/// encoder_distance: how far the gradients that an image leaves in LGA's encoder are from those that were sent, and
/// which way to move the image, written by hand for one image on a CPU.
#pragma once
#include "strategies/lga/gradient_encoder.hpp"
namespace mneme {

// Axes: F filters; T terms of a filter, C 5 5; P pixels of a layer's output; L classes; D features of the last layer.

/// Gradients of one image as they were sent.
struct sent_gradients {
  std::array<std::vector<float>, 3> layers{}; ///< [F, T + 1] each: those of the bias behind those of the filters.
  at::Tensor last_weight{}, last_bias{};      ///< [L, D], [L], float32
  std::int64_t label = 0;
};
/// @param tensors the eight of gradient_encoder::tensors(), float32 on a CPU
[[nodiscard]] sent_gradients sent_by(const std::vector<at::Tensor>& tensors, std::int64_t label);

/// The objective of Zhu, Liu and Han (2019, "Deep Leakage from Gradients", eq. 4), |G(x) - sent|^2, and its slope in x:
/// a second derivative of the encoder, for which autograd keeps a graph of a hundred small operators. Belongs to one
/// thread; what it answers depends on nothing that it was asked before.
class encoder_distance {
public:
  /// @param weights [encoder.size()] float32
  encoder_distance(const gradient_encoder& encoder, const at::Tensor& weights);
  /// The objective at `image` [C H W]; `slope` of that size is overwritten.
  [[nodiscard]] double value_and_slope(const float* image, const sent_gradients& sent, float* slope);

private:
  /// A convolution with its sigmoid, and what passes through it. A bias is a term whose input is 1.
  struct layer {
    std::int64_t channels = 0, height = 0, width = 0, stride = 1, padding = 0; // of its input
    std::int64_t out_height = 0, out_width = 0, terms = 0, pixels = 0;
    std::int64_t plane_height = 0, plane_width = 0; // of every stride-th row and column of the padded input
    std::vector<float> factors{};   // [2 F, T + 1]: twice what gradients differ by, then filters and biases
    std::vector<float> deltas{};    // [2 F, P]: of the loss by the sums, then of the objective by them
    std::vector<float> columns{};   // [T + 1, P]: the input's patches, and ones
    std::vector<float> outputs{};   // [F, P]
    std::vector<float> d_outputs{}; // [F, P]: of the loss
    std::vector<float> pulls{};     // [F, P]: of the objective by outputs
    std::vector<float> d_pulls{};   // [F, P]: of the objective by d_outputs
    [[nodiscard]] const float* filters() const;
    [[nodiscard]] float* sum_pulls(); ///< The second half of deltas.
  };
  [[nodiscard]] static layer made_layer(const gradient_encoder::convolution& shape, std::int64_t height,
                                        std::int64_t width);
  void pass_forward(const float* image, std::int64_t label);
  void pass_back();
  [[nodiscard]] double compare(const sent_gradients& sent);
  void differentiate_back(const sent_gradients& sent);
  void differentiate_forward(float* slope);
  void patches_of(const layer& of_layer, const float* input, float* columns);
  void add_patches(const layer& of_layer, const float* columns, float* input);

  std::array<layer, 3> layers_{};
  std::int64_t classes_ = 0, features_ = 0;
  std::vector<float> last_weight_{}, last_bias_{};     // [L, D], [L]
  std::vector<float> shares_{}, d_logits_{}, pulls_{}; // [L]: softmax, d loss / d logits, d objective / d d_logits
  std::vector<float> last_difference_{};               // [L, D]: sent less found
  std::vector<float> zeros_{};                         // biases of products that have none
  std::vector<float> spread_{}, planes_{};             // columns and planes that are used up at once
};

} // namespace mneme
