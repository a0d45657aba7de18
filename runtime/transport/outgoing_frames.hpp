/// outgoing_frames: bytes that leave a connection together, from where they are.
#pragma once
#include "runtime/base/archive.hpp"
namespace mneme {

/// Frames that leave together: bytes of their own, and those of messages from where they are.
class outgoing_frames {
public:
  /// @param copies all of it is one piece: messages are copied
  explicit outgoing_frames(bool copies) : copies_(copies) {}
  void append(std::span<const std::byte> bytes);
  /// @param message what the bytes are part of
  void append(std::span<const std::byte> bytes, const std::shared_ptr<const archive>& message);
  [[nodiscard]] std::size_t left() const noexcept { return left_; }
  /// The first pieces of what is left, at most `pieces_max` of them.
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces();
  /// So many bytes have left.
  void advance(std::size_t count);

  static constexpr std::size_t pieces_max = 256;

private:
  struct piece {
    const std::byte* at = nullptr; // null: in own_
    std::size_t offset = 0, count = 0;
  };
  bool copies_;
  std::vector<std::byte> own_;
  std::vector<piece> pieces_;
  std::size_t first_ = 0; // of pieces_
  std::size_t left_ = 0;
  std::vector<std::shared_ptr<const archive>> messages_;
  std::vector<std::span<const std::byte>> next_;
};

} // namespace mneme
