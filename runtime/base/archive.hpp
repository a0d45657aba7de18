/// archive: serialization in both directions from one description of a type.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/tensor_exchange.hpp"
#include <c10/core/Device.h>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>
namespace mneme {

/// `all(a)(b)` appends a and b when saving and assigns them when loading. A member `persist(archive&)` or a free
/// function `persist(archive&, T&)` describes a type once. Numbers are little-endian. Tensors of maps are immutable:
/// saving keeps their handles and writes them without a copy. Other tensors are copied, because their owner may modify
/// them. An object shared by several handles is saved once and is shared again after loading.
class archive {
public:
  using buffer = std::shared_ptr<const std::vector<std::byte>>;

  archive() = default; ///< An empty archive for saving.
  /// An archive for loading bytes [first, first + count) of `from`. Reading past the end throws archive_error, before
  /// memory is allocated.
  archive(buffer from, std::size_t first, std::size_t count);

  [[nodiscard]] bool loading() const noexcept { return source_ != nullptr; }

  template <class T>
  archive& operator()(T& value) {
    if constexpr (requires { value.persist(*this); })
      value.persist(*this);
    else if constexpr (requires { persist(*this, value); })
      persist(*this, value);
    else
      visit(value);
    return *this;
  }
  /// Saves a section name. Loading throws archive_error with the name if another section follows at this point.
  archive& section(std::string_view name);
  /// Saves or loads a tensor that is never modified.
  archive& frozen(at::Tensor& value) {
    frozen_tensor(value);
    return *this;
  }
  /// From this point on, digests replace the tensors of maps that both sides hold; null ends the exchange. Both sides
  /// must make this call at the same position. @param with must outlive the archive
  archive& exchanging(tensor_exchange* with) {
    exchange_ = with;
    return *this;
  }
  /// Loading: from this point on, tensors that were saved from a device are moved to `device`. Without this call all
  /// tensors stay on the host.
  archive& onto(const c10::Device& device) {
    device_ = device;
    return *this;
  }
  /// Saves or loads the elements of a vector as one block.
  template <class T>
  archive& plain(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    const auto count = counted(values.size(), sizeof(T));
    values.resize(count);
    raw(values.data(), count * sizeof(T));
    return *this;
  }

  /// Size in bytes, including tensors. When loading, the number of unread bytes.
  [[nodiscard]] std::size_t size() const noexcept { return loading() ? end_ - at_ : bytes_.size() + blob_bytes_; }
  /// Passes the saved bytes to `then`, in order and without copying immutable tensors.
  void each_piece(const std::function<void(std::span<const std::byte>)>& then) const;
  /// The saved bytes as one buffer, for the loading constructor.
  [[nodiscard]] buffer contents() const;
  /// Throws archive_error unless all saved bytes have been read.
  void expect_end() const;

private:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void visit(T& value) { raw(&value, sizeof value); }
  void visit(bool& value);
  void visit(std::string& text);
  template <class T>
  void visit(std::vector<T>& values) {
    const auto count = counted(values.size(), 1);
    if (loading())
      values.clear(); // memory grows with the bytes actually read, so a forged count allocates nothing
    for (std::size_t i = 0; i < count; ++i)
      (*this)(loading() ? values.emplace_back() : values[i]);
  }
  template <class K, class V>
  void visit(std::map<K, V>& entries) {
    const auto count = counted(entries.size(), 1);
    if (!loading()) {
      for (auto& [key, value] : entries)
        (*this)(const_cast<K&>(key))(value); // saving does not modify it
      return;
    }
    entries.clear();
    for (std::size_t i = 0; i < count; ++i) {
      K key{};
      (*this)(key)(entries[key]);
    }
  }
  /// Preserves sharing: handles that share an object when saved share one after loading.
  template <class T>
  void visit(std::shared_ptr<const T>& handle) {
    const auto [number, is_new] = numbered(handle, typeid(T));
    if (loading())
      handle = std::static_pointer_cast<const T>(is_new || number == 0 ? nullptr : shared_[number - 1]);
    if (!is_new)
      return;
    auto content = loading() ? std::make_shared<T>() : std::const_pointer_cast<T>(handle); // saving does not modify it
    (*this)(*content);
    handle = content;
    shared_[number - 1] = handle;
  }
  void visit(at::Tensor& tensor);
  void visit(tensor_map& tensors);

  /// Saves or loads the number of `handle` (0: null). Returns the number, and whether the content follows.
  std::pair<std::size_t, bool> numbered(const std::shared_ptr<const void>& handle, std::type_index kind);
  void frozen_tensor(at::Tensor& value);
  void save_frozen(const at::Tensor& value);
  void load_frozen(at::Tensor& value);
  void save_tensor(const at::Tensor& value, bool frozen);
  void load_tensor(at::Tensor& value);
  /// Saves `count`, or loads it. Loading throws archive_error if fewer than `count` items of `bytes_min` bytes can
  /// follow.
  std::size_t counted(std::size_t count, std::size_t bytes_min);
  void raw(void* data, std::size_t count);

  struct blob {
    std::size_t at = 0; ///< Offset in bytes_ at which the tensor's content is inserted.
    at::Tensor host{};
  };
  std::vector<std::byte> bytes_; // saving: all bytes, without contents of tensors
  std::vector<blob> blobs_;
  std::size_t blob_bytes_ = 0;
  buffer source_; // loading
  std::size_t at_ = 0, end_ = 0;
  std::vector<std::shared_ptr<const void>> shared_; // numbered from 1; kept alive, so that their addresses are not
                                                    // reused
  std::vector<std::type_index> kinds_;              // types of the objects in shared_
  std::unordered_map<const void*, std::size_t> numbers_;
  std::vector<at::Tensor> frozen_; // immutable tensors, numbered from 1; kept alive
  std::unordered_map<const void*, std::size_t> frozen_numbers_;
  tensor_exchange* exchange_ = nullptr;
  c10::Device device_{c10::DeviceType::CPU}; // loading: device for tensors that were saved from a device
};

// -- ids, and types of the standard library ---------------------------------------------------------------------------

template <class Tag, class Rep>
void persist(archive& state, id_of<Tag, Rep>& id) {
  state(id.value);
}
template <class Rep, class Period>
void persist(archive& state, std::chrono::duration<Rep, Period>& span) {
  auto count = span.count();
  state(count);
  span = std::chrono::duration<Rep, Period>(count);
}
template <class Clock, class Duration>
void persist(archive& state, std::chrono::time_point<Clock, Duration>& at) {
  auto since = at.time_since_epoch();
  state(since);
  at = std::chrono::time_point<Clock, Duration>(since);
}
template <class A, class B>
void persist(archive& state, std::pair<A, B>& both) {
  state(both.first)(both.second);
}
template <class T>
void persist(archive& state, std::optional<T>& maybe) {
  bool there = maybe.has_value();
  state(there);
  if (!there)
    maybe.reset();
  else
    state(maybe ? *maybe : maybe.emplace());
}

} // namespace mneme
