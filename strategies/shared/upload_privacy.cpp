#include "strategies/shared/upload_privacy.hpp"
#include <ATen/ops/zeros.h>
#include <cstring>
#include <type_traits>
#include <xxhash.h>
namespace mneme {
namespace {

constexpr const char* disguise_name = "disguise";
static_assert(std::is_trivially_copyable_v<disguise>);

at::Tensor noisy(const at::Tensor& value, double deviation, rng_stream& draw) {
  auto made = value.clone();
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<double>()[i] += deviation * draw.normal();
  return made;
}

} // namespace

at::Tensor as_tensor(const disguise& how) {
  auto bytes = at::zeros({static_cast<std::int64_t>(sizeof how)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<std::uint8_t>(), &how, sizeof how);
  return bytes;
}

tensor_map hidden(const tensor_map& in) {
  disguise how;
  const auto packed = in.at(disguise_name).cpu();
  std::memcpy(&how, packed.const_data_ptr<std::uint8_t>(), sizeof how);
  rng_stream draw(how.noise_key);
  tensor_map out;
  for (const auto& [name, value] : in) {
    if (name == disguise_name)
      continue;
    auto made = value.cpu();
    const bool counts = name == "counts";
    if (counts ? how.on_counts : how.on_sums)
      made = noisy(made, how.noise, draw);
    if (counts && how.on_counts)
      made = made.trunc().clamp_min(0);
    if (how.masked) {
      how.ring.key.index = mask_index(name);
      made = masked(made, how.noise_key.client, how.ring);
    }
    out.put(name, made);
  }
  return out;
}

std::uint64_t mask_index(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

} // namespace mneme
