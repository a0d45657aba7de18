#include "runtime/method/upload_size.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include "runtime/method/update_steps.hpp"
#include <algorithm>
#include <bit>
namespace mneme {
namespace {

constexpr std::int64_t key_bytes = 32, index_bytes = 4, value_bits = 32;

/// True if [uploads] compresses or masks the tensor.
bool is_weight_tensor(const std::string& name, const at::Tensor& value, const model& net) {
  if (value.scalar_type() != at::kFloat)
    return false;
  const auto& layout = net.layout();
  return name == flat_weights ||
         std::any_of(layout.begin(), layout.end(), [&](const parameter& entry) { return entry.name == name; });
}

std::int64_t bytes_of_bits(std::int64_t bits) { return (bits + 7) / 8; }

} // namespace

std::int64_t full_cohort(const scenario& settings) {
  return settings.rounds.cohort > 0 ? settings.rounds.cohort : settings.clients.count;
}

bool changes_upload_bytes(const uploads_section& uploads) { return uploads.compresses() || uploads.is_masked(); }

masking_bytes masked_bytes(const scenario& settings) {
  if (!settings.uploads.is_masked())
    return {};
  const auto clients = full_cohort(settings), others = clients - 1;
  return {.up = key_bytes * (2 + 2 * others + clients), .down = key_bytes * (2 * others + 2 * others)};
}

std::int64_t upload_bytes(const tensor_map* upload, const scenario& settings, const model& net) {
  const auto& uploads = settings.uploads;
  if (!upload || !changes_upload_bytes(uploads))
    return wire_bytes(upload, settings.devices.transfer_dtype);
  std::int64_t entries = 0, others = 0;
  for (const auto& [name, value] : *upload)
    (is_weight_tensor(name, value, net) ? entries : others) +=
        is_weight_tensor(name, value, net) ? value.numel() : static_cast<std::int64_t>(value.nbytes());
  const auto kept = kept_entries(uploads.top_k, entries);
  auto bits = uploads.quantise > 0 ? uploads.quantise : value_bits;
  if (uploads.is_masked())
    bits += std::bit_width(static_cast<std::uint64_t>(full_cohort(settings) - 1)); // ceil(log2 cohort)
  const auto indices = uploads.top_k < 1.0 ? kept * index_bytes : 0;
  return others + indices + bytes_of_bits(kept * bits) + masked_bytes(settings).up;
}

} // namespace mneme
