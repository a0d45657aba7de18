/// pickle_check: interprets an archive's pickle with a safe reader before LibTorch unpickles it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
namespace mneme {

/// Expected content of a pickle.
enum class pickle_root : std::uint8_t {
  module,   ///< data.pkl: one object.
  constants ///< constants.pkl: a tuple of tensors.
};

/// Returns the reason, with its byte offset, why torch.jit.save cannot have written this pickle; "" if it is valid.
/// A pickle may build objects of the archive's own classes, tensors, numbers, booleans, strings, lists, tuples and
/// dictionaries. Each storage must have the stated bytes, and each tensor must lie within its storage; LibTorch checks
/// neither. Strings must lie within the pickle, and memo indices below its size in bytes, because LibTorch allocates
/// memory for both before it checks them.
/// @param storages bytes of the archive's storage entries by key, such as {"0": 432}
[[nodiscard]] std::string pickle_error(std::string_view pickle, pickle_root root,
                                       const std::map<std::string, std::uint64_t, std::less<>>& storages);

} // namespace mneme
