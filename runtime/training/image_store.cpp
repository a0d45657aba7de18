#include "runtime/training/image_store.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include <ATen/ops/empty.h>
#include <algorithm>
namespace mneme {
namespace {

bool made_by_host(const dataset& source, std::span<const augmentation> augment) {
  const auto has_part = [](const augmentation& how) { return how.part.has_value(); };
  return source.shown.changes() || std::any_of(augment.begin(), augment.end(), has_part);
}

} // namespace

void image_store::gather_into(at::Tensor& out, const std::shared_ptr<const dataset>& source,
                              std::span<const std::int64_t> rows, std::span<const augmentation> augment,
                              std::span<const rng_key> noise) {
  if (source->vectors.defined() || made_by_host(*source, augment))
    return gather_on_host(out, *source, {.rows = rows, .augment = augment, .noise = noise});
  if (device_.is_cpu())
    return gather(*source, rows, augment, out.mutable_data_ptr<float>());
  if (rows.empty())
    return;
  auto& known = copies_[source.get()];
  if (known.source.expired()) // an expired entry may belong to another data set at this address
    known = {.source = weak_handle(source), .tables = tables_on(device_, *source)};
  // Pinned memory makes the copy asynchronous; LibTorch does not reuse it before the copy has finished.
  const auto packed = packed_rows(*source, rows, augment, device_.is_cuda()).to(device_, /*non_blocking=*/true);
  kernels::cuda::start_on(device_, gather_call(*source, known.tables, packed, out));
}

void image_store::forget_unused() {
  std::erase_if(copies_, [](const auto& known) { return known.second.source.expired(); });
}

/// Gathers rows on the host. This is used for vectors, which are few and short-lived, and for images that are resized.
void image_store::gather_on_host(at::Tensor& out, const dataset& source, const asked_rows& asked) const {
  auto host = device_.is_cpu() ? out : at::empty(out.sizes(), at::kFloat);
  gather_any(source, asked.rows, asked.augment, asked.noise, host.mutable_data_ptr<float>());
  if (!device_.is_cpu())
    out.copy_(host);
}

} // namespace mneme
