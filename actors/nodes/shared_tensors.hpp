/// shared_tensors: the tensors that a run and one of its nodes both have, as each of them knows it.
#pragma once
#include "runtime/base/tensor_exchange.hpp"
#include <map>
#include <unordered_map>
#include <vector>
namespace mneme {

/// Smaller tensors come as they are: their names would be nearly as long.
inline constexpr std::size_t named_tensor_bytes_min = 1024;

/// Tensors by name, and by handle for those who ask again.
class tensor_shelf {
public:
  /// Null: it is not there.
  [[nodiscard]] const at::Tensor* find(const digest128& name) const;
  /// The name of what is there under this handle.
  [[nodiscard]] const digest128* name_of(const at::Tensor& value) const;
  void put(const digest128& name, const at::Tensor& value);
  void erase(const digest128& name);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  std::map<digest128, at::Tensor> tensors_;
  std::unordered_map<const void*, digest128> names_;
  std::size_t bytes_ = 0;
};

/// The run's side. It alone decides what is forgotten: what was used last stays, up to a budget. What it has told the
/// node to forget it keeps until the node has heard that, because names of it may be on their way.
class run_side_tensors final : public tensor_exchange {
public:
  explicit run_side_tensors(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  [[nodiscard]] std::optional<offered_tensor> offer(const at::Tensor& value) override;
  void keep(const digest128& name, const at::Tensor& value) override;
  [[nodiscard]] at::Tensor find(const digest128& name) override;

  /// Ends a message to the node: the names that it is to forget, which go with the message.
  [[nodiscard]] std::vector<digest128> end_message();
  /// The node has handled so many messages; false: it was not sent as many.
  bool heard(std::uint64_t messages);

private:
  void touch(const digest128& name);

  std::size_t bytes_max_;
  tensor_shelf shelf_;
  std::map<digest128, std::uint64_t> used_;         // the message that named it last
  std::map<std::uint64_t, tensor_shelf> forgotten_; // by the message that said so
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
