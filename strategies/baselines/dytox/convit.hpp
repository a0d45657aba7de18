/// convit: a transformer with an encoder shared by all tasks, and a token and a head for each task of the run.
///
/// A. Douillard, A. Rame, G. Couairon and M. Cord, "DyTox: Transformers for Continual Learning with DYnamic TOken
/// eXpansion", CVPR 2022. The encoder is that of S. d'Ascoli et al., "ConViT: Improving Vision Transformers with Soft
/// Convolutional Inductive Biases", ICML 2021.
#pragma once
#include "runtime/models/function_net.hpp"
namespace mneme {

// Axes: B rows of a step, N patches of an image, d channels of a token, H heads of attention, T tasks.

/// Sizes and parts of the net.
struct convit_shape {
  std::array<std::int64_t, 3> input{}; ///< [C, H, W] of the images.
  std::int64_t patch = 4, width = 384, depth = 5, heads = 12;
  double drop_path = 0.1;           ///< Drop probability of the last block. It grows linearly from 0 at the first
                                    ///< block.
  bool gated = true;                ///< False disables positional attention in the encoder.
  std::vector<class_range> tasks{}; ///< Adjacent class ranges from class 0 on; at least one.
  bool divergence = false;          ///< Adds the divergence head and its map.
};

/// Patches with positional embeddings pass `depth` blocks of gated positional self-attention, with one gate g per head:
///     A = (1 - g) softmax(Q K^T / sqrt(d / H)) + g softmax(w . (dx, dy, dx^2 + dy^2) + b),  g = sigmoid(gating).
/// The rows of A are divided by their sums. In one block of class attention, the token of task k attends to [token_k,
/// patches] and becomes e_k. The logits of the task's classes are Linear_k(LayerNorm_k(e_k)). No token attends to
/// another token. In training, stochastic depth drops branches of a block (Huang et al. 2016).
///
/// The features are e_0, e_1, ... concatenated, [T * d]. A forward pass over some classes computes only the tasks that
/// have one of these classes, and fills the features of other tasks with zeros. The map "divergence", [classes of the
/// largest task + 1, 1, 1], is Linear(LayerNorm(e_k)) of the newest computed task k.
class convit final : public function_net {
public:
  /// @pre the patch size divides height and width, and the head count divides the token width
  explicit convit(convit_shape shape);
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return tasks() * shape_.width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return shape_.tasks.back().high; }
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] bool uses_random_numbers() const noexcept override { return shape_.drop_path > 0.0; }
  [[nodiscard]] std::vector<std::string> maps() const override;
  [[nodiscard]] std::shared_ptr<const model> with_frozen(const std::vector<bool>& chosen) const override;

  [[nodiscard]] std::int64_t tasks() const noexcept { return std::ssize(shape_.tasks); }
  [[nodiscard]] std::int64_t width() const noexcept { return shape_.width; }
  /// Layer names for training_options::layers: patch embedding, positions and self-attention blocks (encoder_layers),
  /// class attention (decoder_layer), token and norm of a task (task_layers), and rows of all heads (head_layer).
  [[nodiscard]] static std::vector<std::string> encoder_layers();
  [[nodiscard]] static std::string decoder_layer();
  [[nodiscard]] static std::vector<std::string> task_layers(std::int64_t task);
  [[nodiscard]] static std::string head_layer();
  [[nodiscard]] static std::string divergence_layer();
  /// The token of a task in flat weights [P], as a view [d].
  [[nodiscard]] at::Tensor token_of(const at::Tensor& flat, std::int64_t task) const;

protected:
  [[nodiscard]] model_results apply(const model_pass& pass) const override;
  [[nodiscard]] std::int64_t row_floats() const override;
  [[nodiscard]] std::array<std::int64_t, 3> input() const override { return shape_.input; }

private:
  void add_linear(const std::string& name, std::int64_t in, std::int64_t out, bool biased);
  void add_norm(const std::string& name);
  void add_encoder_block(const std::string& name);
  void add_mlp(const std::string& name);
  void add_decoder(const std::string& name);
  void add_tasks();
  [[nodiscard]] at::Tensor patches(const model_pass& pass) const;
  [[nodiscard]] at::Tensor self_attention(const model_pass& pass, std::size_t first, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor class_attention(const model_pass& pass, const at::Tensor& tokens, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor apply_drop_path(const model_pass& pass, std::int64_t block, std::int64_t branch,
                                           const at::Tensor& x) const;
  [[nodiscard]] at::Tensor logits(const model_pass& pass, const at::Tensor& e, class_range tasks) const;
  [[nodiscard]] class_range tasks_of(class_range classes) const;

  convit_shape shape_;
  std::int64_t rows_ = 0, columns_ = 0; // size of the grid of patches
  at::Tensor places_;                   // [N, N, 3] offsets between patches: dx, dy, dx^2 + dy^2
  // Indices of first parameters in the layout; the parameters of a block are adjacent.
  std::vector<std::size_t> blocks_;
  std::size_t decoder_ = 0, tokens_ = 0, norms_ = 0, head_ = 0, divergence_ = 0;
};

/// The model kind of model.name = "convit".
class convit_kind final : public model_kind {
public:
  void keys(key_table& table) override;
  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    return build_with(shape, classes, false);
  }
  /// @param divergence adds the divergence head and its map
  [[nodiscard]] tl::expected<model_ref, std::string> build_with(std::array<std::int64_t, 3> shape, std::int64_t classes,
                                                                bool divergence) const;

private:
  [[nodiscard]] std::vector<class_range> ranges(std::int64_t classes) const;

  convit_shape shape_;
};

} // namespace mneme
