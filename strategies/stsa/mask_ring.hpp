/// mask_ring: secure aggregation by pairwise masks that cancel in the sum (Bonawitz et al. 2017).
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

// Values are 64-bit fixed-point numbers, so sums wrap around and masks cancel exactly. Clients form a ring by id. Each
// adds the mask shared with the next client and subtracts the mask shared with the previous one (a sparse graph of
// pairs as in Bell et al. 2020). If a client never uploads, the server removes the remaining masks, as the protocol's
// shared secrets permit.

/// Fixed-point scale, 2^24: values below 2^38 in size have 24 fractional bits.
inline constexpr double fixed_point_scale = 16'777'216.0;

/// Parameters of one tensor's masks. add_masks() and remove_masks() set `key.client`; the caller sets `key.index`.
struct mask_ring {
  rng_key key{};            ///< Key that all clients of a round share.
  std::int64_t clients = 0; ///< Number of clients in the ring.
};

/// Returns `value` in fixed-point format plus the client's masks, int64 of the same shape. Throws std::runtime_error if
/// a value does not fit the format. @param value float64, contiguous
[[nodiscard]] at::Tensor add_masks(const at::Tensor& value, client_id client, const mask_ring& ring);
/// Removes the masks that remain in a sum over the clients `present` (ascending), and returns it as float64.
[[nodiscard]] at::Tensor remove_masks(const at::Tensor& sum, const std::vector<client_id>& present,
                                      const mask_ring& ring);

} // namespace mneme
