/// non_owning: handles that do not count, and what remembers objects by either kind of handle.
#pragma once
#include <memory>
namespace mneme {

/// A handle without a count, for an object that outlives every holder, such as what the run context owns. Copies cost
/// nothing, where counting handles make cores wait for each other's counts.
template <class T>
[[nodiscard]] std::shared_ptr<T> non_owning(const std::shared_ptr<T>& owner) {
  return {std::shared_ptr<void>(), owner.get()};
}

/// Remembers an object without keeping it, beside its address. A std::weak_ptr of a handle without a count is expired
/// from the start, though its object outlives everybody.
template <class T>
class weak_handle {
public:
  weak_handle() = default;
  explicit weak_handle(const std::shared_ptr<T>& handle)
      : counted_(handle), is_counted_(handle.use_count() > 0), is_set_(true) {}
  /// The object is no more, or there never was one: another may be at its address.
  [[nodiscard]] bool expired() const noexcept { return is_counted_ ? counted_.expired() : !is_set_; }

private:
  std::weak_ptr<T> counted_{};
  bool is_counted_ = false, is_set_ = false;
};

} // namespace mneme
