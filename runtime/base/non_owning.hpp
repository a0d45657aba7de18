/// non_owning: handles without reference counts, and weak references to both kinds of handle.
#pragma once
#include <memory>
namespace mneme {

/// A handle without a reference count, for an object that outlives all handles, such as a member of the run context.
/// Copies are cheap, whereas a shared count would be slow if several cores updated it.
template <class T>
[[nodiscard]] std::shared_ptr<T> non_owning(const std::shared_ptr<T>& owner) {
  return {std::shared_ptr<void>(), owner.get()};
}

/// A weak reference to an object. (A std::weak_ptr of a handle without a count would always be expired.)
template <class T>
class weak_handle {
public:
  weak_handle() = default;
  explicit weak_handle(const std::shared_ptr<T>& handle)
      : counted_(handle), is_counted_(handle.use_count() > 0), is_set_(true) {}
  /// True if the object was destroyed or never set. Its address may be reused.
  [[nodiscard]] bool expired() const noexcept { return is_counted_ ? counted_.expired() : !is_set_; }

private:
  std::weak_ptr<T> counted_{};
  bool is_counted_ = false, is_set_ = false;
};

} // namespace mneme
