/// upload_privacy: noise and secure-aggregation masks on a client's statistics, before they are uploaded.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "strategies/stsa/mask_ring.hpp"
namespace mneme {

/// Noise and mask options of an upload. Noise is drawn tensor by tensor, in the order of names.
struct privacy_options {
  double noise = 0.0; ///< Standard deviation of the noise.
  bool on_sums = false, on_counts = false, masked = false;
  rng_key noise_key{}; ///< Key of this client.
  mask_ring ring{};
  [[nodiscard]] bool changes_upload() const { return on_sums || on_counts || masked; }
};

/// Adds the options to a map of tensors, as the input of hidden().
void put_privacy(tensor_map& beside, const privacy_options& options);
/// Function of a compute job: applies the options in the map to its float64 tensors. Noisy "counts" are max(0, trunc(n
/// + noise)). Other tensors get noise element by element, so a triangle still represents a symmetric matrix. Masked
/// tensors are int64 (mask_ring.hpp), with a separate mask for each tensor.
[[nodiscard]] tensor_map hidden(const tensor_map& in);
/// Mask index of the tensor named `name`.
[[nodiscard]] std::uint64_t mask_index(const std::string& name);

} // namespace mneme
