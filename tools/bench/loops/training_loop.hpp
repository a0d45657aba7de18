/// training_loop: federated averaging written with LibTorch alone, without an engine.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
namespace mneme::bench {

// Shapes: N rows in total, K stacked models, B rows of a batch, F pixels of a row, P parameters.

/// The work that every loop does. Client c holds the rows c * rows to (c + 1) * rows - 1.
struct workload {
  std::vector<std::int64_t> shape{}; ///< Shape of one row: [features], or [channels, height, width].
  std::int64_t hidden = 0;           ///< Width of the MLP's hidden layer; unused by the CNN.
  std::int64_t classes = 10;
  std::int64_t clients = 0;
  std::int64_t rows = 0;   ///< Rows of each client; a multiple of `batch`.
  std::int64_t cohort = 0; ///< Number of clients per round; a multiple of `width`.
  std::int64_t batch = 0;
  std::int64_t width = 1; ///< Number of stacked models; 1 for sequential loops.
  double learning_rate = 0.1;
  std::string device = "cpu"; ///< Device of the tensors in LibTorch's notation; sequential loops only.
  [[nodiscard]] std::int64_t steps() const { return rows / batch; }
};

/// Generated rows, stored as normalized floats; the same for every loop.
struct population {
  at::Tensor images; ///< [N, F] float32 in [-1, 1]
  at::Tensor labels; ///< [N] int64
};
[[nodiscard]] population make_population(const workload& load);

/// Clients of a round; the same for every loop.
[[nodiscard]] std::vector<std::int64_t> cohort_of(const workload& load, std::int64_t round);
[[nodiscard]] std::vector<std::int64_t> visiting_order(const workload& load, std::int64_t round, std::int64_t client);

/// Weights of the MLP: [hidden, F], [hidden], [classes, hidden], [classes].
[[nodiscard]] std::vector<at::Tensor> first_mlp_weights(const workload& load);
/// Weights of the CNN: [32, C, 3, 3], [32], [64, 32, 3, 3], [64], [128, 64 * h * w], [128], [classes, 128], [classes],
/// with h and w the image size after the convolutions and the pooling.
[[nodiscard]] std::vector<at::Tensor> first_cnn_weights(const workload& load);

/// Euclidean norm of all weights.
[[nodiscard]] double norm_of(const std::vector<at::Tensor>& weights);

/// A training loop that is measured.
class training_loop {
public:
  virtual ~training_loop() = default;
  /// Trains each client of the cohort for one epoch of plain SGD from the same weights. The mean of their weights is
  /// the start of the next round.
  virtual void round(std::int64_t number, std::span<const std::int64_t> cohort) = 0;
  /// Euclidean norm of all weights. Loops that did the same work have nearly the same norm.
  [[nodiscard]] virtual double weights_norm() const = 0;
};

/// Loops that train sequentially, with autograd and LibTorch's operators.
[[nodiscard]] std::unique_ptr<training_loop> bare_mlp(const workload& load);
[[nodiscard]] std::unique_ptr<training_loop> bare_cnn(const workload& load);
/// Loops that train `width` stacked clients: one operator per layer computes all of them.
[[nodiscard]] std::unique_ptr<training_loop> stacked_cnn(const workload& load);
[[nodiscard]] std::unique_ptr<training_loop> stacked_mlp_autograd(const workload& load);
[[nodiscard]] std::unique_ptr<training_loop> stacked_mlp_by_hand(const workload& load);
[[nodiscard]] std::unique_ptr<training_loop> stacked_mlp_tuned(const workload& load);

} // namespace mneme::bench
