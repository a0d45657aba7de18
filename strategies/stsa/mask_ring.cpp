#include "strategies/stsa/mask_ring.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/empty_like.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
namespace mneme {
namespace {

/// Adds the mask shared by `first` and the next client of the ring, or subtracts it if `off`.
void add_mask(at::Tensor& to, client_id first, const mask_ring& ring, bool off) {
  auto key = ring.key;
  key.client = first;
  rng_stream draw(key);
  auto* const values = reinterpret_cast<std::uint64_t*>(to.mutable_data_ptr<std::int64_t>());
  for (std::int64_t i = 0; i < to.numel(); ++i)
    values[i] += off ? std::uint64_t{0} - draw.bits64() : draw.bits64();
}

client_id before(client_id client, const mask_ring& ring) {
  const auto clients = static_cast<std::uint32_t>(ring.clients);
  return {(client.value + clients - 1) % clients};
}

} // namespace

at::Tensor add_masks(const at::Tensor& value, client_id client, const mask_ring& ring) {
  MNEME_CHECK(value.scalar_type() == at::kDouble && value.is_contiguous(), value.scalar_type());
  constexpr double value_max = 274'877'906'944.0; // 2^38: sums over thousands of clients still fit into 63 bits
  auto hidden = at::empty_like(value, value.options().dtype(at::kLong));
  for (std::int64_t i = 0; i < value.numel(); ++i) {
    const auto number = value.const_data_ptr<double>()[i];
    if (!(std::abs(number) < value_max))
      throw std::runtime_error("a statistic of " + std::to_string(number) +
                               " does not fit the fixed-point numbers of strategy.secure_aggregation");
    hidden.mutable_data_ptr<std::int64_t>()[i] = std::llround(number * fixed_point_scale);
  }
  if (ring.clients > 1) {
    add_mask(hidden, client, ring, false);
    add_mask(hidden, before(client, ring), ring, true);
  }
  return hidden;
}

at::Tensor remove_masks(const at::Tensor& sum, const std::vector<client_id>& present, const mask_ring& ring) {
  auto plain = sum.clone();
  const auto there = [&](client_id client) { return std::binary_search(present.begin(), present.end(), client); };
  for (const auto client : present) {
    if (ring.clients < 2)
      break;
    const client_id next{(client.value + 1) % static_cast<std::uint32_t>(ring.clients)};
    if (!there(next))
      add_mask(plain, client, ring, true);
    if (const auto previous = before(client, ring); !there(previous))
      add_mask(plain, previous, ring, false);
  }
  return plain.to(at::kDouble).div_(fixed_point_scale);
}

} // namespace mneme
