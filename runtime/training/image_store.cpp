#include "runtime/training/image_store.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include <ATen/ops/empty.h>
namespace mneme {

void image_store::gather_into(at::Tensor& out, const std::shared_ptr<const dataset>& source,
                              std::span<const std::int64_t> rows, std::span<const augmentation> augment,
                              std::span<const rng_key> noise) {
  if (source->vectors.defined())
    return gather_vectors_into(out, *source, rows, noise);
  if (device_.is_cpu())
    return gather(*source, rows, augment, out.mutable_data_ptr<float>());
  if (rows.empty())
    return;
  auto& known = copies_[source.get()];
  if (known.source.expired()) // of another data set, perhaps, that was at this address
    known = {.source = source, .tables = tables_on(device_, *source)};
  // Pinned memory, so that the copy is asynchronous; LibTorch does not reuse it before the copy is done.
  const auto packed = packed_rows(*source, rows, augment, true).to(device_, /*non_blocking=*/true);
  kernels::cuda::start_on(device_, gather_call(*source, known.tables, packed, out));
}

void image_store::forget_unused() {
  std::erase_if(copies_, [](const auto& known) { return known.second.source.expired(); });
}

/// Vectors are few and short-lived: they are gathered by the host.
void image_store::gather_vectors_into(at::Tensor& out, const dataset& source, std::span<const std::int64_t> rows,
                                      std::span<const rng_key> noise) const {
  if (device_.is_cpu())
    return gather_vectors(source, rows, noise, out.mutable_data_ptr<float>());
  auto host = at::empty(out.sizes(), at::kFloat);
  gather_vectors(source, rows, noise, host.mutable_data_ptr<float>());
  out.copy_(host);
}

} // namespace mneme
