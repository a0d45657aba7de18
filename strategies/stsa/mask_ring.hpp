/// mask_ring: uploads hidden by pairwise masks that cancel in their sum (Bonawitz et al. 2017).
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

// Values are fixed-point numbers of 64 bits, so that sums wrap and masks cancel to the last bit. Clients stand in a
// ring by id; each adds the mask it shares with the next one and takes off the one it shares with the previous (a
// sparse graph of pairs as in Bell et al. 2020). What a client that never answered leaves behind is taken off by the
// server, as the protocol's shared secrets allow.

/// Steps of the fixed-point grid: values below 2^38 in size keep 24 bits behind the point.
inline constexpr double fixed_point_scale = 16'777'216.0;

/// One client's part. `key.index` and `key.client` are set here.
struct mask_ring {
  rng_key key{};            ///< Shared by all clients of a round.
  std::int64_t clients = 0; ///< In the ring.
};

/// @param value float64, contiguous; throws std::runtime_error where it does not fit the grid
/// @return int64 of the same shape
[[nodiscard]] at::Tensor masked(const at::Tensor& value, client_id client, const mask_ring& ring);
/// Takes off what is left of the masks where only `present` (ascending) have been summed, and goes back to float64.
[[nodiscard]] at::Tensor unmasked(const at::Tensor& sum, const std::vector<client_id>& present, const mask_ring& ring);

} // namespace mneme
