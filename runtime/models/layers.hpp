/// layers: builds a net from the layers of model.layers.
#pragma once
#include "runtime/models/foreign_layer.hpp"
#include <map>
namespace mneme {

/// The initial value of a parameter that is not drawn, and the parameter's name in files.
struct given_parameter {
  std::string name{};
  at::Tensor value{}; ///< Shaped as in files, contiguous, float32, on the CPU.
};

struct layers_options {
  std::array<std::int64_t, 3> shape{}; ///< C, H, W of a row.
  std::int64_t classes = 0;
  std::int64_t tokens = 0; ///< Number of distinct tokens; 0: rows are images or numbers.
  head_shape head{};
  /// Keyed by the names that the layers give to parameters. All other parameters are drawn.
  std::map<std::string, given_parameter> given{};
  /// Layers that the caller supplies, keyed by the texts that represent them. If the net's last layer is one of them,
  /// it computes the class scores.
  std::map<std::string, foreign_layer> foreign{};
  std::string foreign_digest{}; ///< Digest of the computations of the foreign layers.
  std::string note{};           ///< See network::note().
};

/// Builds the net. Fails with the first error in `layers`, or if a given parameter has another shape than its layer's.
[[nodiscard]] tl::expected<model_ref, std::string> build_layers(const std::vector<std::string>& layers,
                                                                const layers_options& options);

} // namespace mneme
