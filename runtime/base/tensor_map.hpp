/// tensor_map: named tensors, such as weights, uploads, class statistics and client memories.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
namespace mneme {

/// Tensors sorted by name. Copies share their contents, so tensors in a map are immutable: replace one with put(), and
/// never modify it.
class tensor_map {
public:
  /// Inserts or replaces a tensor. @pre `value` is contiguous and requires no gradient
  void put(std::string name, at::Tensor value);
  /// Returns the tensor with this name. Throws std::out_of_range with a list of the existing names if there is none.
  [[nodiscard]] const at::Tensor& at(std::string_view name) const;
  /// The tensor with this name. Returns null if there is none.
  [[nodiscard]] const at::Tensor* find(std::string_view name) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Total size of the tensors in bytes, without names.
  [[nodiscard]] std::int64_t bytes() const noexcept;

  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }

private:
  std::map<std::string, at::Tensor, std::less<>> entries_;
};

/// An immutable map, shared by any number of readers.
using tensors_ref = std::shared_ptr<const tensor_map>;

/// A client's memory between rounds; null before the first round. It is committed on delivery only: a client that
/// leaves or misses the deadline keeps its previous memory.
using memory_ref = tensors_ref;

/// Name of a net's flat weights [P] in broadcasts and uploads. The layout of the scenario's model gives the offset of
/// each parameter.
inline constexpr const char* flat_weights = "weights";

/// A map with the single tensor `flat_weights`.
[[nodiscard]] tensors_ref weights_only(at::Tensor flat);

} // namespace mneme
