#include "strategies/stsa/upload_privacy.hpp"
#include <ATen/ops/zeros.h>
#include <cstring>
#include <type_traits>
#include <xxhash.h>
namespace mneme {
namespace {

static_assert(std::is_trivially_copyable_v<privacy_options>);

at::Tensor noisy(const at::Tensor& value, double deviation, rng_stream& draw) {
  auto made = value.clone();
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<double>()[i] += deviation * draw.normal();
  return made;
}

} // namespace

at::Tensor as_tensor(const privacy_options& options) {
  auto bytes = at::zeros({static_cast<std::int64_t>(sizeof options)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<std::uint8_t>(), &options, sizeof options);
  return bytes;
}

tensor_map hidden(const tensor_map& in) {
  privacy_options options;
  const auto packed = in.at(privacy_options::tensor_name).cpu();
  std::memcpy(&options, packed.const_data_ptr<std::uint8_t>(), sizeof options);
  rng_stream draw(options.noise_key);
  tensor_map out;
  for (const auto& [name, value] : in) {
    if (name == privacy_options::tensor_name)
      continue;
    auto made = value.cpu();
    const bool counts = name == "counts";
    if (counts ? options.on_counts : options.on_sums)
      made = noisy(made, options.noise, draw);
    if (counts && options.on_counts)
      made = made.trunc().clamp_min(0);
    if (options.masked) {
      options.ring.key.index = mask_index(name);
      made = masked(made, options.noise_key.client, options.ring);
    }
    out.put(name, made);
  }
  return out;
}

std::uint64_t mask_index(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

} // namespace mneme
