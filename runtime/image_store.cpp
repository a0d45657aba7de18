#include "runtime/image_store.hpp"
namespace mneme {

void image_store::gather_into(at::Tensor& out, const std::shared_ptr<const dataset>& source,
                              std::span<const std::int64_t> rows, std::span<const augmentation> augment) {
  if (device_.is_cpu())
    return gather(*source, rows, augment, out.mutable_data_ptr<float>());
  auto& known = copies_[source.get()];
  if (!known.source)
    known = {.source = source, .images = source->images.to(device_)};
  out.copy_(composite_gather(*source, known.images, rows, augment));
}

} // namespace mneme
