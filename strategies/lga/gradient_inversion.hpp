/// gradient_inversion: computes gradients of images in a small random net, and reconstructs images from such gradients,
/// for the proxy of GLFC and LGA (Zhu et al. 2019, "Deep Leakage from Gradients").
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/program.hpp"
#include "runtime/models/model.hpp"
#include <array>
#include <map>
namespace mneme {

// Axes: K images, C channels, H height, W width, L classes, F filters, T = C * 5 * 5 weights of a filter, P pixels of a
// layer's output, D features of the last layer.

// -- the encoder, in gradient_encoder.cpp -----------------------------------------------------------------------------

/// The encoder Gamma: three 5 x 5 convolutions with 12 filters and a linear layer, with sigmoids between them. One
/// instance is drawn per run, shared by clients and proxy, and never trained.
class gradient_encoder {
public:
  static constexpr std::int64_t kernel = 5, filters = 12;
  struct convolution {
    std::int64_t channels = 0, stride = 1, padding = 2;
  };
  /// Height or width of a convolution's output for an input of `extent` pixels.
  [[nodiscard]] static std::int64_t output_extent(std::int64_t extent, const convolution& layer);
  /// Chooses strides and padding so that images of 32, 64 and 84 pixels shrink to 8 x 8; other sizes get similar
  /// strides.
  gradient_encoder(std::array<std::int64_t, 3> image, std::int64_t classes);
  [[nodiscard]] std::int64_t size() const; ///< Number of parameters.
  /// Draws every weight and bias from U(-0.5, 0.5): [size()] float32.
  [[nodiscard]] at::Tensor drawn(const rng_key& stream) const;
  /// Names and shapes of the eight tensors: "1.weight", "1.bias", ..., "4.bias".
  [[nodiscard]] const std::vector<declared_tensor>& tensors() const noexcept { return tensors_; }
  /// Returns the gradients of softmax cross-entropy with respect to each of tensors(), for each image separately:
  /// [K, ...]. Differentiable with respect to the images. The result of an image does not depend on the other images.
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

/// Infers the label from the gradients of one image. Sigmoid features are positive, so only the label's row of the last
/// layer has a negative sum (Zhao et al. 2020, iDLG). @param last_weight [L, D]
[[nodiscard]] std::int64_t label_of_gradients(const at::Tensor& last_weight);

/// The gradients of one image, as uploaded.
struct sent_gradients {
  std::array<std::vector<float>, 3> layers{}; ///< [F, T + 1] each: filters, then bias.
  at::Tensor last_weight{}, last_bias{};      ///< [L, D], [L], float32
  std::int64_t label = 0;
};
/// Copies the gradients. @param tensors gradients of the eight gradient_encoder::tensors(), float32 on the host
[[nodiscard]] sent_gradients sent_by(const std::vector<at::Tensor>& tensors, std::int64_t label);

/// The objective |G(x) - sent|^2 (Zhu, Liu and Han 2019, eq. 4) and its gradient with respect to x, computed by hand.
/// The gradient needs second derivatives of the encoder, for which autograd would build a graph of a hundred small
/// operators. Not thread-safe. Each result is independent of earlier calls.
class encoder_distance {
public:
  /// @param weights [encoder.size()] float32
  encoder_distance(const gradient_encoder& encoder, const at::Tensor& weights);
  /// Returns the objective at `image` [C * H * W] and overwrites `gradient` [C * H * W] with its gradient.
  [[nodiscard]] double value_and_gradient(const float* image, const sent_gradients& sent, float* gradient);

private:
  /// A convolution with its sigmoid, and its intermediate values. The bias is one more weight, whose input is 1.
  struct layer {
    std::int64_t channels = 0, height = 0, width = 0, stride = 1, padding = 0; // shape of the input; the convolution
    std::int64_t out_height = 0, out_width = 0, terms = 0, pixels = 0;
    std::int64_t plane_height = 0, plane_width = 0; // size of the grid of every stride-th row and column of the padded
                                                    // input
    std::vector<float> factors{};                   // [2 F, T + 1]: twice the gradient differences, for filters with
                                                    // biases
    std::vector<float> deltas{};                    // [2 F, P]: d loss / d z; d objective / d (d loss / d z)
    std::vector<float> columns{};                   // [T + 1, P]: patches of the input, and a row of ones
    std::vector<float> outputs{};                   // [F, P]
    std::vector<float> d_outputs{};                 // [F, P]: d loss / d outputs
    std::vector<float> pulls{};                     // [F, P]: d objective / d outputs
    std::vector<float> d_pulls{};                   // [F, P]: d objective / d d_outputs
    [[nodiscard]] const float* filters() const;
    [[nodiscard]] float* sum_pulls(); ///< The second half of deltas.
  };
  [[nodiscard]] static layer layer_for(const gradient_encoder::convolution& shape, std::int64_t height,
                                       std::int64_t width);
  void forward_pass(const float* image, std::int64_t label);
  void backward_pass();
  [[nodiscard]] double compare(const sent_gradients& sent);
  void differentiate_backward(const sent_gradients& sent);
  void differentiate_forward(float* gradient);
  /// into [D] = before [D] + scale * vector [L] * matrix [L, D]. @param before null means zeros
  void vector_by_matrix(const std::vector<float>& vector, const std::vector<float>& matrix, std::vector<float>& into,
                        const float* before = nullptr, float scale = 1.0F) const;
  /// into [L] = matrix [L, D] * vector [D] + bias [L].
  void matrix_by_vector(const std::vector<float>& matrix, const std::vector<float>& vector,
                        const std::vector<float>& bias, std::vector<float>& into) const;
  void patches_of(const layer& l, const float* input, float* columns);
  void add_patches(const layer& l, const float* columns, float* input);

  std::array<layer, 3> layers_{};
  std::int64_t classes_ = 0, features_ = 0;
  std::vector<float> last_weight_{}, last_bias_{};     // [L, D], [L]
  std::vector<float> shares_{}, d_logits_{}, pulls_{}; // [L]: softmax, d loss / d logits, d objective / d d_logits
  std::vector<float> last_difference_{};               // [L, D]: sent minus computed
  std::vector<float> zeros_{};                         // zeros, for products without a bias
  std::vector<float> spread_{}, planes_{};             // scratch memory for columns and planes
};

// -- reconstruction and prototypes ------------------------------------------------------------------------------------

/// L-BFGS without line search for one variable x [n] float32 (Liu and Nocedal 1989), as torch.optim.LBFGS with its
/// defaults: 20 iterations per step, 25 evaluations, history 100, tolerances 1e-7 and 1e-9. The caller evaluates the
/// objective at x() and passes the result to advance_step(), so that many variables can be evaluated in one stack.
class lbfgs {
public:
  lbfgs() = default; ///< Creates a state that load() has to fill.
  lbfgs(at::Tensor start, double learning_rate) : x_(std::move(start)), rate_(learning_rate) {}
  [[nodiscard]] const at::Tensor& x() const noexcept { return x_; } ///< The point to evaluate.
  /// Takes the objective `value` and its `gradient` [n] at x(). Returns true if the step continues: x() has changed and
  /// must be evaluated. Returns false at the end of a step; the next call starts a new one.
  [[nodiscard]] bool advance_step(double value, const at::Tensor& gradient);
  [[nodiscard]] std::map<std::string, at::Tensor> save() const;
  void load(const std::map<std::string, at::Tensor>& saved);

private:
  [[nodiscard]] at::Tensor direction(const at::Tensor& gradient);

  at::Tensor x_, direction_, gradient_before_;
  std::vector<at::Tensor> changes_, moves_; // changes of the gradient and of x, oldest first
  std::vector<double> inverses_;            // 1 / (change . move)
  double rate_ = 1.0, length_ = 1.0, scale_ = 1.0, value_before_ = 0.0;
  std::int64_t iterations_ = 0;                           // number of iterations over all steps
  std::int64_t iterations_of_step_ = 0, evaluations_ = 0; // numbers in the current step
};

/// Options of the reconstruction.
struct inversion_options {
  std::int64_t steps = 250; ///< Number of optimizer steps, each with up to 20 evaluations.
  double learning_rate = 1.0;
  std::int64_t kept = 20;      ///< How many of the last iterates become images.
  bool by_hand_on_cpus = true; ///< False: autograd is used on CPUs, too, which is ten times slower; for benchmarks.
};
/// A program that reconstructs images from the gradients of one image. Reads "encoder" and "1.weight" ... "4.bias";
/// returns "images" [kept, C, H, W] uint8, "label" [1] int64 and "objective" [2] float64, its first and last value. If
/// the optimizer diverges to non-finite values, it restarts from new noise, at most three times. After the last
/// failure, "objective" ends with -1 and the images are zeros.
[[nodiscard]] program_ref inversion_program(const gradient_encoder& encoder, const inversion_options& options);

/// Perturbation of prototypes before they are encoded: 50 gradient steps on their pixels.
enum class prototype_perturbation : std::uint8_t {
  none,
  pixels, ///< Official: on the net's binary cross-entropy, with unnormalized pixels in [0, 1].
  latent, ///< Paper (Dong et al. 2023): on the cross-entropy of features plus 0.1 N(0, v) with the variances v of the
          ///< class, at rate 1, with normalized pixels. The 50 steps, with new noise in each step, are our choice.
};
/// A program that computes the encoder's gradients for prototypes, which are the job's rows. Returns the eight tensors,
/// [rows, ...]. Reads "encoder". With a perturbation it also reads "weights" [P] of the net and "seen", the number of
/// classes seen; `latent` also reads "variances" [rows, D] float64 of each prototype's class.
[[nodiscard]] program_ref prototype_program(model_ref net, const gradient_encoder& encoder,
                                            prototype_perturbation moved);

} // namespace mneme
