/// frames: wire format for messages of any length, with heartbeats and flow control.
#pragma once
#include "runtime/transport/outgoing_frames.hpp"
#include <array>
#include <deque>
namespace mneme {

// A stream starts with a preamble. A frame is: length of the content (4 bytes, little-endian), kind (1 byte), 3 zero
// bytes, content.
//   begin      content: length of the message that follows (8 bytes)
//   part       content: the next bytes of the message
//   heartbeat  no content
//   credit     content: number of message bytes (8 bytes) that were received and consumed; at least 1 MiB at a time
// Flow control: a sender may have at most window_bytes of message bytes without credit. A fast sender thus never fills
// the memory of a slow receiver.

inline constexpr std::uint16_t protocol_version = 3;
inline constexpr std::size_t frame_bytes_max = std::size_t{1} << 18;
/// Limit of message bytes in flight to one peer. With a round trip of 100 ms, this limit allows 320 MB/s.
inline constexpr std::size_t window_bytes = std::size_t{32} << 20;
/// Smallest credit in bytes, because every credit wakes a thread at both ends.
inline constexpr std::size_t credit_bytes_min = std::size_t{1} << 20;

/// A peer's violation of the protocol; what() describes it.
class protocol_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};
/// The peer has another protocol or other credentials, so another attempt cannot succeed.
class incompatible_peer : public protocol_error {
public:
  using protocol_error::protocol_error;
};

/// Parses bytes into messages. The reader allocates memory only for received bytes and one more frame, whatever lengths
/// the headers announce.
class frame_reader {
public:
  /// @param message_bytes_max limit for the size of a message
  explicit frame_reader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}
  /// Changes the limit for the size of a message.
  void allow(std::size_t message_bytes_max) noexcept { message_bytes_max_ = message_bytes_max; }
  /// Parses received bytes. Throws protocol_error; the reader must not be used after that.
  void feed(std::span<const std::byte> bytes);
  /// Memory for the next bytes if they are message content. If it is empty, use feed(). Valid until the next call.
  [[nodiscard]] std::span<std::byte> write_area() noexcept;
  /// Records that `count` bytes were written to write_area(). A count of 0 has no effect.
  void mark_written(std::size_t count);
  [[nodiscard]] std::vector<archive::buffer> take_messages() { return std::exchange(messages_, {}); }
  /// Number of bytes that the peer has acknowledged since the last call.
  [[nodiscard]] std::uint64_t take_acknowledged() noexcept { return std::exchange(confirmed_, 0); }
  /// Records that a message of this size was consumed.
  void consumed(std::size_t bytes) noexcept;
  /// Credit in bytes to send to the peer now, or 0.
  [[nodiscard]] std::uint64_t take_credit() noexcept;
  [[nodiscard]] bool has_begun() const noexcept { return preamble_read_ == preamble_bytes; }

  static constexpr std::size_t preamble_bytes = 8;

private:
  std::size_t read_preamble(std::span<const std::byte> bytes);
  std::size_t read_header(std::span<const std::byte> bytes);
  std::size_t read_content(std::span<const std::byte> bytes);
  void check_header() const;
  void end_frame();

  std::size_t message_bytes_max_;
  std::size_t preamble_read_ = 0;
  std::array<std::byte, 8> header_{};
  std::size_t header_read_ = 0;
  std::uint32_t length_ = 0, content_read_ = 0; // size of the current frame's content, and number of its bytes read so
                                                // far
  std::array<std::byte, 8> number_{};           // content of a begin or credit frame
  std::optional<std::uint64_t> expected_{};     // length of the current message
  std::vector<std::byte> coming_;               // content of the current message up to the end of the current frame
  std::vector<archive::buffer> messages_;
  std::uint64_t confirmed_ = 0;
  std::size_t unconsumed_ = 0; // size of complete messages that are not consumed
  std::uint64_t owed_ = 0;     // received bytes that have not been acknowledged
};

/// Formats messages as frames, within the peer's credit. Tensors are written without a copy.
class frame_writer {
public:
  /// Queues a message.
  void add(std::shared_ptr<const archive> message);
  void add_heartbeat() { heartbeat_due_ = true; }
  void add_credit(std::uint64_t bytes) { credit_due_ += bytes; }
  void acknowledged(std::uint64_t bytes); ///< Throws protocol_error if more bytes are acknowledged than were sent.
  /// Appends the next frames to `out`, up to about one frame of maximum size. Appends nothing if nothing can be sent.
  void write_to(outgoing_frames& out);
  /// True if write_to() would append a frame.
  [[nodiscard]] bool has_something() const noexcept;
  /// Bytes of added messages that have not been written yet.
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }
  /// Total bytes of messages written.
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return bytes_written_; }

private:
  struct outgoing {
    std::shared_ptr<const archive> message{};
    std::vector<std::span<const std::byte>> pieces{};
    std::size_t piece = 0, offset = 0; // position of the next byte to write
    std::size_t left = 0;
    bool begun = false;
  };
  void write_part(outgoing_frames& out);

  bool preamble_due_ = true;
  bool heartbeat_due_ = false;
  std::uint64_t credit_due_ = 0;
  std::deque<outgoing> queue_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t unconfirmed_ = 0, bytes_written_ = 0;
};

} // namespace mneme
