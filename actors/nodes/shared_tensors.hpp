/// shared_tensors: caches of the tensors that a run and one of its nodes share.
#pragma once
#include "runtime/base/tensor_exchange.hpp"
#include <map>
#include <unordered_map>
#include <vector>
namespace mneme {

/// Smaller tensors are sent in full, because their digest would be nearly as long.
inline constexpr std::size_t named_tensor_bytes_min = 1024;

/// Tensors by digest, with lookup by handle.
class tensor_shelf {
public:
  /// Null if there is none.
  [[nodiscard]] const at::Tensor* find(const digest128& name) const;
  /// Digest of the tensor with this handle; null if there is none.
  [[nodiscard]] const digest128* name_of(const at::Tensor& value) const;
  void put(const digest128& name, const at::Tensor& value);
  void erase(const digest128& name);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  std::map<digest128, at::Tensor> tensors_;
  std::unordered_map<const void*, digest128> names_;
  std::size_t bytes_ = 0;
};

/// The run's side; it alone decides on evictions (least recently used, up to a budget). An evicted tensor is kept until
/// the node has acknowledged the eviction, because messages with its digest may be in flight.
class run_side_tensors final : public tensor_exchange {
public:
  explicit run_side_tensors(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  [[nodiscard]] std::optional<offered_tensor> offer(const at::Tensor& value) override;
  void keep(const digest128& name, const at::Tensor& value) override;
  [[nodiscard]] at::Tensor find(const digest128& name) override;

  /// Ends a message to the node. Returns the digests to evict, which are sent with it.
  [[nodiscard]] std::vector<digest128> end_message();
  /// The node has handled this number of messages. Returns false if it was not sent as many.
  bool heard(std::uint64_t messages);

private:
  void touch(const digest128& name);

  std::size_t bytes_max_;
  tensor_shelf shelf_;
  std::map<digest128, std::uint64_t> used_;         // by digest: last message that used it
  std::map<std::uint64_t, tensor_shelf> forgotten_; // evicted, by the message that says so
  std::uint64_t message_ = 1;                       // the next one
};

/// The node's side.
class node_side_tensors final : public tensor_exchange {
public:
  [[nodiscard]] std::optional<offered_tensor> offer(const at::Tensor& value) override;
  void keep(const digest128& name, const at::Tensor& value) override { shelf_.put(name, value); }
  [[nodiscard]] at::Tensor find(const digest128& name) override;
  void forget(const std::vector<digest128>& names);
  [[nodiscard]] std::size_t bytes() const noexcept { return shelf_.bytes(); }

private:
  tensor_shelf shelf_;
};

} // namespace mneme
