/// Named tensors: weights, uploads, class statistics, and memories of clients.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
namespace mneme {

/// Tensors sorted by name. Copies share contents, so tensors in a map are immutable: replace one with put(), never
/// modify it.
class tensor_map {
public:
  /// Inserts or replaces. @pre `value` is contiguous and requires no gradient
  void put(std::string name, at::Tensor value);
  /// Throws std::out_of_range with `name` and the existing names.
  [[nodiscard]] const at::Tensor& at(std::string_view name) const;
  /// Null if there is no such tensor.
  [[nodiscard]] const at::Tensor* find(std::string_view name) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Payload in bytes at the current dtypes, names not counted.
  [[nodiscard]] std::int64_t bytes() const noexcept;

  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

private:
  std::map<std::string, at::Tensor, std::less<>> entries_;
};

/// An immutable map, shared by any number of readers.
using tensors_ref = std::shared_ptr<const tensor_map>;

/// A client's memory between rounds; null: none yet. Committed on delivery only, so a client that leaves or misses its
/// deadline keeps the memory from before the round.
using memory_ref = tensors_ref;

/// Name of the flat weights [P] of a net in broadcasts and uploads. The layout of the scenario's model gives the
/// position of each parameter.
inline constexpr const char* flat_weights = "weights";

/// A map with one tensor, named `flat_weights`.
[[nodiscard]] tensors_ref weights_only(at::Tensor flat);

} // namespace mneme
