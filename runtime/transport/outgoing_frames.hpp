/// outgoing_frames: frames that are sent together and that refer to the contents of messages instead of copying them.
#pragma once
#include "runtime/base/archive.hpp"
namespace mneme {

/// A sequence of owned bytes and of references into messages.
class outgoing_frames {
public:
  /// @param copies true: copy messages, so that all bytes are contiguous
  explicit outgoing_frames(bool copies) : copies_(copies) {}
  /// Appends a copy of the bytes.
  void append(std::span<const std::byte> bytes);
  /// Appends bytes. @param message the owner of the bytes
  void append(std::span<const std::byte> bytes, const std::shared_ptr<const archive>& message);
  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  /// The first unsent pieces, at most `pieces_max`.
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces();
  /// Records that `count` bytes were sent.
  void advance(std::size_t count);

  static constexpr std::size_t pieces_max = 256;

private:
  struct piece {
    const std::byte* at = nullptr; // null: the bytes are in own_
    std::size_t offset = 0, count = 0;
  };
  bool copies_;
  std::vector<std::byte> own_;
  std::vector<piece> pieces_;
  std::size_t first_ = 0; // index of the first unsent piece
  std::size_t left_ = 0;
  std::vector<std::shared_ptr<const archive>> messages_;
  std::vector<std::span<const std::byte>> next_;
};

} // namespace mneme
