/// gradient_inversion: the gradients that images leave in a small random net, and images from such gradients, as GLFC's
/// and LGA's proxy makes them (Zhu et al. 2019, "Deep Leakage from Gradients").
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/program.hpp"
#include "runtime/models/model.hpp"
#include <array>
#include <map>
namespace mneme {

// Axes: K images; C channels, H height, W width of an image; L classes; F filters; T terms of a filter, C 5 5; P pixels
// of a layer's output; D features of the last layer.

// -- the net, in gradient_encoder.cpp ---------------------------------------------------------------------------------

/// The encoder Gamma: three convolutions of 5 x 5 and 12 filters and a linear layer, with sigmoids between them. One
/// instance is drawn for a run, known to clients and proxy, and never trained.
class gradient_encoder {
public:
  static constexpr std::int64_t kernel = 5, filters = 12;
  struct convolution {
    std::int64_t channels = 0, stride = 1, padding = 2;
  };
  /// Height or width of what a convolution makes of an image with `extent`.
  [[nodiscard]] static std::int64_t extent_behind(std::int64_t extent, const convolution& layer);
  /// Strides and padding that leave 8 x 8 pixels of 32, 64 and 84; of others, strides near them.
  gradient_encoder(std::array<std::int64_t, 3> image, std::int64_t classes);
  [[nodiscard]] std::int64_t size() const; ///< All parameters.
  /// Every weight and bias from U(-0.5, 0.5), flat: [size()] float32.
  [[nodiscard]] at::Tensor drawn(const rng_key& stream) const;
  /// "1.weight", "1.bias", ... "4.bias", with the shapes of the eight tensors.
  [[nodiscard]] const std::vector<declared_tensor>& tensors() const noexcept { return tensors_; }
  /// Gradients of softmax cross-entropy in all tensors, of each image by itself, in the order of tensors(): [K, ...].
  /// Differentiable in the images; the bits of one do not depend on the others.
  /// @param weights [size()] @param images [K, C, H, W] @param labels [K] int64
  [[nodiscard]] std::vector<at::Tensor> gradients(const at::Tensor& weights, const at::Tensor& images,
                                                  const at::Tensor& labels) const;
  [[nodiscard]] std::array<std::int64_t, 3> image() const noexcept { return image_; }
  [[nodiscard]] std::int64_t classes() const noexcept { return classes_; }
  [[nodiscard]] const std::array<convolution, 3>& convolutions() const noexcept { return layers_; }

private:
  std::array<std::int64_t, 3> image_;
  std::int64_t classes_, features_ = 0;
  std::array<convolution, 3> layers_{};
  std::vector<declared_tensor> tensors_;
};

/// The label behind gradients of one image: features of a sigmoid are positive, so of the last layer's rows that of the
/// label alone has a negative sum (Zhao et al. 2020, iDLG). @param last_weight [L, features]
[[nodiscard]] std::int64_t label_of_gradients(const at::Tensor& last_weight);

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
  [[nodiscard]] static layer layer_for(const gradient_encoder::convolution& shape, std::int64_t height,
                                       std::int64_t width);
  void pass_forward(const float* image, std::int64_t label);
  void pass_back();
  [[nodiscard]] double compare(const sent_gradients& sent);
  void differentiate_back(const sent_gradients& sent);
  void differentiate_forward(float* slope);
  /// into [D] = before [D] + scale * vector [L] * matrix [L, D]. @param before null: zeros
  void vector_by_matrix(const std::vector<float>& vector, const std::vector<float>& matrix, std::vector<float>& into,
                        const float* before = nullptr, float scale = 1.0F) const;
  /// into [L] = matrix [L, D] * vector [D] + bias [L]
  void matrix_by_vector(const std::vector<float>& matrix, const std::vector<float>& vector,
                        const std::vector<float>& bias, std::vector<float>& into) const;
  void patches_of(const layer& l, const float* input, float* columns);
  void add_patches(const layer& l, const float* columns, float* input);

  std::array<layer, 3> layers_{};
  std::int64_t classes_ = 0, features_ = 0;
  std::vector<float> last_weight_{}, last_bias_{};     // [L, D], [L]
  std::vector<float> shares_{}, d_logits_{}, pulls_{}; // [L]: softmax, d loss / d logits, d objective / d d_logits
  std::vector<float> last_difference_{};               // [L, D]: sent less found
  std::vector<float> zeros_{};                         // biases of products that have none
  std::vector<float> spread_{}, planes_{};             // columns and planes that are used up at once
};

// -- what is done with it ---------------------------------------------------------------------------------------------

/// Limited-memory BFGS without line search, step by step, as PyTorch's optimizer of that name computes it: the state of
/// one variable x [n] float32 (Liu and Nocedal 1989; torch.optim.LBFGS with its defaults: 20 iterations a
/// step, 25 evaluations, a history of 100, tolerances 1e-7 and 1e-9). Whoever evaluates the objective asks where, and
/// tells what it is there; many variables are evaluated together like that.
class lbfgs {
public:
  lbfgs() = default; ///< For load().
  lbfgs(at::Tensor start, double learning_rate) : x_(std::move(start)), rate_(learning_rate) {}
  [[nodiscard]] const at::Tensor& x() const noexcept { return x_; } ///< Where the objective is wanted.
  /// The objective at x() is `value` with `gradient` [n]. Returns true while the step goes on: x() has moved, and the
  /// objective is wanted there. After false the next call begins a step.
  [[nodiscard]] bool tell(double value, const at::Tensor& gradient);
  [[nodiscard]] std::map<std::string, at::Tensor> save() const;
  void load(const std::map<std::string, at::Tensor>& saved);

private:
  [[nodiscard]] at::Tensor direction(const at::Tensor& gradient);

  at::Tensor x_, direction_, gradient_before_;
  std::vector<at::Tensor> changes_, moves_; // of the gradient and of x, oldest first
  std::vector<double> inverses_;            // 1 / (change . move)
  double rate_ = 1.0, length_ = 1.0, scale_ = 1.0, value_before_ = 0.0;
  std::int64_t iterations_ = 0;                           // in all
  std::int64_t iterations_of_step_ = 0, evaluations_ = 0; // of the step under way
};

struct inversion_options {
  std::int64_t steps = 250; ///< Each takes the optimizer up to 20 evaluations.
  double learning_rate = 1.0;
  std::int64_t kept = 20;      ///< The last so many iterates are images.
  bool by_hand_on_cpus = true; ///< Else autograd does it there, too, ten times slower: to measure that.
};
/// A program that turns gradients ("1.weight" ... of one image, and "encoder") into "images" [kept, C, H, W] uint8,
/// "label" [1] int64 and "objective" [2] float64, at the start and at the end. Where the optimizer leaves the numbers
/// it starts again from other noise, up to three times; "objective" ends at -1 where all of them failed.
[[nodiscard]] program_ref inversion_program(const gradient_encoder& encoder, const inversion_options& with);

/// How prototypes are moved before they are encoded: 50 steps of descent on their pixels.
enum class prototype_perturbation : std::uint8_t {
  none,
  pixels, ///< As released: on the binary cross-entropy of the net, which sees pixels in [0, 1].
  latent, ///< On the cross-entropy behind features to which 0.1 N(0, v) is added, v the variances of the class
          ///< (Dong et al. 2023), at rate 1; the net sees pixels as in training. Steps, and noise anew in each: ours.
};
/// A program that turns a client's prototypes, its rows, into the gradients they leave in the encoder: the eight
/// tensors, [rows, ...]. Reads "encoder" and, where prototypes are moved, "weights" of the net and "seen", how many
/// classes were; latent: "variances" [rows, D] float64, those of each prototype's class.
[[nodiscard]] program_ref prototype_program(model_ref net, const gradient_encoder& encoder,
                                            prototype_perturbation moved);

} // namespace mneme
