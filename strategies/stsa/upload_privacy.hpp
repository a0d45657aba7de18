/// upload_privacy: what clients may do to their statistics before they leave: noise, and masks that cancel.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "strategies/stsa/mask_ring.hpp"
namespace mneme {

/// Noise is drawn tensor after tensor, in name order.
struct privacy_options {
  double noise = 0.0; ///< Standard deviation of what is added.
  bool on_sums = false, on_counts = false, masked = false;
  rng_key noise_key{}; ///< The client's own.
  mask_ring ring{};
  [[nodiscard]] bool changes_upload() const { return on_sums || on_counts || masked; }
};

/// Puts options beside tensors for hidden(), each field by its name.
void put_privacy(tensor_map& beside, const privacy_options& options);
/// Compute job: the float64 tensors of a map, hidden as the privacy_options in it say. Noise on "counts" leaves whole
/// numbers from 0 on (max(0, trunc(n + noise))); on anything else it is added element by element, so that a triangle
/// stays one of a symmetric matrix. Masked tensors are int64 (mask_ring.hpp), each under a mask of its own.
[[nodiscard]] tensor_map hidden(const tensor_map& in);
/// The index of the mask of the tensor called `name`.
[[nodiscard]] std::uint64_t mask_index(const std::string& name);

} // namespace mneme
