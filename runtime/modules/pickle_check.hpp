/// pickle_check: a pickle of an archive, followed by our own reader before LibTorch's builds anything of it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
namespace mneme {

/// Who a pickle is for.
enum class pickle_root : std::uint8_t {
  module,   ///< data.pkl: one object
  constants ///< constants.pkl: a tuple of tensors
};

/// Why a pickle is none that torch.jit.save writes, in words with its byte; "": it is one. It may build objects of the
/// archive's own classes, tensors, numbers, flags, texts, and lists, tuples and tables of them, and nothing else. Each
/// storage has the bytes that the pickle says, and each tensor lies within its storage, which LibTorch does not look
/// at. Texts lie within the pickle, and values are kept at places below its number of bytes: LibTorch takes memory for
/// both before it looks.
/// @param storages bytes of the archive's entries for storages, by key: {"0": 432}
[[nodiscard]] std::string pickle_refusal(std::string_view pickle, pickle_root root,
                                         const std::map<std::string, std::uint64_t, std::less<>>& storages);

} // namespace mneme
