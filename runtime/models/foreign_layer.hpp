/// foreign_layer: a layer that the caller of build_layers() supplies, such as operators of a module file.
#pragma once
#include "runtime/models/layer.hpp"
#include <functional>
namespace mneme {

struct foreign_layer {
  /// Position of the layer in the net, set by build_layers().
  struct place {
    std::vector<std::int64_t> offsets{}; ///< Of the parameters within [P].
    /// Of the running statistics within [P]; empty until the net is complete, null if there are none.
    std::shared_ptr<const std::vector<std::int64_t>> buffer_offsets{};
    std::uint64_t number = 0; ///< Index among the drawing layers of the net; set if `draws`.
    bool reads_rows = false;  ///< True: it reads the net's rows, whose images are channels first.
  };
  std::vector<parameter> parameters{}; ///< With the names of files and initial values in `leading`.
  std::vector<parameter> buffers{};    ///< Running statistics that training updates; as `parameters`.
  std::int64_t in_floats = 0;          ///< Numbers of one input row.
  std::vector<std::int64_t> out{};     ///< Shape of one output row in files: [C, H, W], [T, W] or [D].
  bool draws = false;                  ///< True: it draws random numbers in training.
  std::function<std::unique_ptr<layer>(const place&)> make{};
};

} // namespace mneme
