/// lent: handles that do not count.
#pragma once
#include <memory>
namespace mneme {

/// Of something that outlives every holder, such as what a run's world owns. Copies cost nothing, where counting ones
/// would make cores wait for each other's counts.
template <class T>
[[nodiscard]] std::shared_ptr<T> lent(const std::shared_ptr<T>& what) {
  return {std::shared_ptr<void>(), what.get()};
}

} // namespace mneme
