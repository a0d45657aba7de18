#include "runtime/data/dataset.hpp"
#include "runtime/base/check.hpp"
namespace mneme {

std::array<std::int64_t, 3> dataset::shape() const {
  if (vectors.defined() && vector_shape[0] > 0)
    return vector_shape;
  if (vectors.defined())
    return {1, 1, vectors.size(1)};
  MNEME_CHECK(images.dim() == 4, images.dim());
  return {images.size(1), images.size(2), images.size(3)};
}

} // namespace mneme
