/// tensor_caches: caches of tensors that a run and one of its nodes both hold, so that they are sent only once.
#pragma once
#include "runtime/base/tensor_exchange.hpp"
#include <map>
#include <unordered_map>
#include <vector>
namespace mneme {

/// Smaller tensors are sent in full, because a digest would save little.
inline constexpr std::size_t named_tensor_bytes_min = 1024;

/// Maps digests to tensors, and tensor handles to digests.
class tensor_cache {
public:
  /// Returns null if there is no tensor with this digest.
  [[nodiscard]] const at::Tensor* find(const digest128& name) const;
  /// Returns the digest of the tensor with this handle; null if it is not stored.
  [[nodiscard]] const digest128* name_of(const at::Tensor& value) const;
  void put(const digest128& name, const at::Tensor& value);
  void erase(const digest128& name);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  std::map<digest128, at::Tensor> tensors_;
  std::unordered_map<const void*, digest128> names_;
  std::size_t bytes_ = 0;
};

/// Cache in the run's process, which alone decides on evictions: least recently used first, up to a budget in bytes. It
/// keeps an evicted tensor until the node has acknowledged the eviction, because messages may still name its digest.
class run_tensor_cache final : public tensor_exchange {
public:
  explicit run_tensor_cache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  [[nodiscard]] std::optional<offered_tensor> offer(const at::Tensor& value) override;
  void keep(const digest128& name, const at::Tensor& value) override;
  [[nodiscard]] at::Tensor find(const digest128& name) override;

  /// Ends a message to the node. Returns the digests to evict, which are sent with it.
  [[nodiscard]] std::vector<digest128> end_message();
  /// Acknowledges that the node has handled this number of messages. Returns false if fewer were sent.
  bool acknowledge(std::uint64_t messages);

private:
  void touch(const digest128& name);

  std::size_t bytes_max_;
  tensor_cache cache_;
  std::map<digest128, std::uint64_t> used_;         // by digest: last message that used it
  std::map<std::uint64_t, tensor_cache> forgotten_; // evicted tensors, by number of the evicting message
  std::uint64_t message_ = 1;                       // number of the next message
};

/// Cache in the node's process; evicts the tensors that the run names.
class node_tensor_cache final : public tensor_exchange {
public:
  [[nodiscard]] std::optional<offered_tensor> offer(const at::Tensor& value) override;
  void keep(const digest128& name, const at::Tensor& value) override { cache_.put(name, value); }
  [[nodiscard]] at::Tensor find(const digest128& name) override;
  void forget(const std::vector<digest128>& names);
  [[nodiscard]] std::size_t bytes() const noexcept { return cache_.bytes(); }

private:
  tensor_cache cache_;
};

} // namespace mneme
