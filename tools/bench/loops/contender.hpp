/// contender: federated averaging as one would write it with LibTorch alone, without an engine.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
namespace mneme::bench {

// Shapes: N all rows, K models side by side, B rows of a batch, F pixels of a row, P parameters.

/// What all contenders compute. Client c holds the rows c * rows ... (c + 1) * rows - 1.
struct workload {
  std::vector<std::int64_t> shape{}; ///< Shape of one row: [features], or [channels, height, width].
  std::int64_t hidden = 0;           ///< Width of the MLP's hidden layer; not read by the CNN.
  std::int64_t classes = 10;
  std::int64_t clients = 0;
  std::int64_t rows = 0;   ///< Rows of each client; a multiple of `batch`.
  std::int64_t cohort = 0; ///< Clients a round; a multiple of `width`.
  std::int64_t batch = 0;
  std::int64_t width = 1; ///< Models side by side; 1 for loops that take client after client.
  double learning_rate = 0.1;
  std::string device = "cpu"; ///< Bare loops: where tensors lie, as LibTorch names it.
  [[nodiscard]] std::int64_t steps() const { return rows / batch; }
};

/// Made rows, the same for every contender, as such a program keeps them: normalised floats, ready to be picked.
struct population {
  at::Tensor images; ///< [N, F] float32 in [-1, 1]
  at::Tensor labels; ///< [N] int64
};
[[nodiscard]] population made_population(const workload& load);

/// The clients of a round, and the order in which one of them visits its rows: equal for every contender.
[[nodiscard]] std::vector<std::int64_t> cohort_of(const workload& load, std::int64_t round);
[[nodiscard]] std::vector<std::int64_t> visiting_order(const workload& load, std::int64_t round, std::int64_t client);

/// Weights of both layers of the MLP: [hidden, F], [hidden], [classes, hidden], [classes].
[[nodiscard]] std::vector<at::Tensor> first_mlp_weights(const workload& load);
/// Weights of the CNN: [32, C, 3, 3], [32], [64, 32, 3, 3], [64], [128, 64 * h * w], [128], [classes, 128], [classes],
/// where h and w are left of the image after both convolutions and the pooling.
[[nodiscard]] std::vector<at::Tensor> first_cnn_weights(const workload& load);

/// Euclidean norm of all of them.
[[nodiscard]] double norm_of(const std::vector<at::Tensor>& weights);

/// A loop under measurement.
class contender {
public:
  virtual ~contender() = default;
  /// One epoch of plain SGD for every client of the cohort, from a copy of the same weights; their mean is the start
  /// of the next round.
  virtual void round(std::int64_t number, std::span<const std::int64_t> cohort) = 0;
  /// Euclidean norm of all weights: contenders that did the same work agree in it.
  [[nodiscard]] virtual double weights_norm() const = 0;
};

/// Client after client, autograd, LibTorch's own operators.
[[nodiscard]] std::unique_ptr<contender> bare_mlp(const workload& load);
[[nodiscard]] std::unique_ptr<contender> bare_cnn(const workload& load);
/// `width` clients stacked: one operator of a layer computes it for all of them.
[[nodiscard]] std::unique_ptr<contender> stacked_cnn(const workload& load);
[[nodiscard]] std::unique_ptr<contender> stacked_mlp_autograd(const workload& load);
[[nodiscard]] std::unique_ptr<contender> stacked_mlp_by_hand(const workload& load);
[[nodiscard]] std::unique_ptr<contender> stacked_mlp_tuned(const workload& load);

} // namespace mneme::bench
