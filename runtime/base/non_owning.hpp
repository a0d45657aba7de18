/// non_owning: handles that do not count.
#pragma once
#include <memory>
namespace mneme {

/// A handle without a count, for an object that outlives every holder, such as what the run context owns. Copies cost
/// nothing, where counting handles make cores wait for each other's counts.
template <class T>
[[nodiscard]] std::shared_ptr<T> non_owning(const std::shared_ptr<T>& owner) {
  return {std::shared_ptr<void>(), owner.get()};
}

} // namespace mneme
