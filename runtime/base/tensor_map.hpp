/// Named tensors: weights, uploads, class statistics, and what a client remembers between rounds.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
namespace mneme {

/// Tensors sorted by name. Copying copies handles, not contents, so the one rule of sharing is:
/// a tensor in a map is frozen. Replace it with put(); never write into it.
class tensor_map {
public:
  /// Adds or replaces. @pre `value` is contiguous and needs no gradient
  void put(std::string name, at::Tensor value);
  /// Throws std::out_of_range, naming `name` and what there is instead.
  [[nodiscard]] const at::Tensor& at(std::string_view name) const;
  /// Null if there is none.
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

/// Shared by any number of readers; another value needs another map.
using tensors_ref = std::shared_ptr<const tensor_map>;

/// What a client remembers between rounds. Null: nothing yet. Committed on delivery only, so a
/// client that leaves or misses its deadline remembers what it knew before the round.
using memory_ref = tensors_ref;

/// The name under which the flat weights [P] of a net travel in broadcasts and uploads. The layout
/// of the scenario's model says which part of it is which parameter.
inline constexpr const char* flat_weights = "weights";

/// A map that holds one tensor, named `flat_weights`.
[[nodiscard]] tensors_ref weights_only(at::Tensor flat);

} // namespace mneme
