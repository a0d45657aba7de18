#include "strategies/stsa/upload_privacy.hpp"
#include <ATen/ops/tensor.h>
#include <xxhash.h>
namespace mneme {
namespace {

at::Tensor noisy(const at::Tensor& value, double deviation, rng_stream& draw) {
  auto noisy_values = value.clone();
  for (std::int64_t i = 0; i < noisy_values.numel(); ++i)
    noisy_values.mutable_data_ptr<double>()[i] += deviation * draw.normal();
  return noisy_values;
}

void put(tensor_map& to, const std::string& name, std::int64_t value) { to.put(name, at::tensor(value, at::kLong)); }
std::int64_t number_in(const tensor_map& from, const std::string& name) { return from.at(name).item<std::int64_t>(); }

void put_key(tensor_map& to, const std::string& name, const rng_key& key) {
  put(to, name + ".seed", static_cast<std::int64_t>(key.seed));
  put(to, name + ".purpose", key.purpose);
  put(to, name + ".client", key.client.value);
  put(to, name + ".task", key.task.value);
  put(to, name + ".visit", key.visit);
  put(to, name + ".index", static_cast<std::int64_t>(key.index));
}
rng_key key_in(const tensor_map& from, const std::string& name) {
  return {.seed = static_cast<std::uint64_t>(number_in(from, name + ".seed")),
          .purpose = static_cast<std::uint32_t>(number_in(from, name + ".purpose")),
          .client = {static_cast<std::uint32_t>(number_in(from, name + ".client"))},
          .task = {static_cast<std::uint32_t>(number_in(from, name + ".task"))},
          .visit = static_cast<std::uint32_t>(number_in(from, name + ".visit")),
          .index = static_cast<std::uint64_t>(number_in(from, name + ".index"))};
}

constexpr const char* privacy_lead = "privacy."; // prefix of option names

privacy_options privacy_in(const tensor_map& from) {
  const std::string name = privacy_lead;
  return {.noise = from.at(name + "noise").item<double>(),
          .on_sums = number_in(from, name + "on_sums") != 0,
          .on_counts = number_in(from, name + "on_counts") != 0,
          .masked = number_in(from, name + "masked") != 0,
          .noise_key = key_in(from, name + "noise_key"),
          .ring = {.key = key_in(from, name + "ring"), .clients = number_in(from, name + "ring.clients")}};
}

} // namespace

void put_privacy(tensor_map& beside, const privacy_options& options) {
  const std::string name = privacy_lead;
  beside.put(name + "noise", at::tensor(options.noise, at::kDouble));
  put(beside, name + "on_sums", options.on_sums);
  put(beside, name + "on_counts", options.on_counts);
  put(beside, name + "masked", options.masked);
  put_key(beside, name + "noise_key", options.noise_key);
  put_key(beside, name + "ring", options.ring.key);
  put(beside, name + "ring.clients", options.ring.clients);
}

tensor_map hidden(const tensor_map& in) {
  auto options = privacy_in(in);
  rng_stream draw(options.noise_key);
  tensor_map out;
  for (const auto& [name, value] : in) {
    if (name.starts_with(privacy_lead))
      continue;
    auto hidden_values = value.cpu();
    const bool counts = name == "counts";
    if (counts ? options.on_counts : options.on_sums)
      hidden_values = noisy(hidden_values, options.noise, draw);
    if (counts && options.on_counts)
      hidden_values = hidden_values.trunc().clamp_min(0);
    if (options.masked) {
      options.ring.key.index = mask_index(name);
      hidden_values = add_masks(hidden_values, options.noise_key.client, options.ring);
    }
    out.put(name, hidden_values);
  }
  return out;
}

std::uint64_t mask_index(const std::string& name) { return XXH3_64bits(name.data(), name.size()); }

} // namespace mneme
