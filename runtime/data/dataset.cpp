#include "runtime/data/dataset.hpp"
#include "runtime/base/check.hpp"
namespace mneme {

std::array<std::int64_t, 2> resize_spec::resized(std::int64_t height, std::int64_t width) const {
  if (resize == 0)
    return {height, width};
  if (width <= height)
    return {resize * height / width, resize};
  return {resize, resize * width / height};
}

std::array<std::int64_t, 3> dataset::stored_shape() const {
  MNEME_CHECK(images.dim() == 4, images.dim());
  return {images.size(1), images.size(2), images.size(3)};
}

std::array<std::int64_t, 3> dataset::shape() const {
  if (vectors.defined() && vector_shape[0] > 0)
    return vector_shape;
  if (vectors.defined())
    return {1, 1, vectors.size(1)};
  const auto [channels, height, width] = stored_shape();
  if (shown.crop > 0)
    return {channels, shown.crop, shown.crop};
  const auto [lines, pixels] = shown.resized(height, width);
  return {channels, lines, pixels};
}

} // namespace mneme
