/// frames: how messages of any length travel over a stream of bytes, in parts, with signs of life and credits between.
#pragma once
#include "runtime/transport/outgoing_frames.hpp"
#include <array>
#include <deque>
namespace mneme {

// A stream begins with a preamble. Then come frames: the length of their content (4 bytes, little-endian), their kind
// (1 byte), 3 zeros, and the content.
//   begin      a message of so many bytes (8) follows
//   part       the next bytes of it
//   heartbeat  nothing: who sends it lives
//   credit     so many bytes (8) of messages have arrived and may be followed by others; less than a MiB waits
// Whoever receives keeps to a window: bytes of messages that were received and not yet consumed hold credits back, so
// that a sender that is fast never fills the memory of a receiver that is slow.

inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t frame_bytes_max = std::size_t{1} << 18;
/// Bytes of messages on their way to one peer. A link of 100 ms carries 320 MB/s with it.
inline constexpr std::size_t window_bytes = std::size_t{32} << 20;
/// So much is confirmed at a time: each credit wakes a thread at both ends.
inline constexpr std::size_t credit_bytes_min = std::size_t{1} << 20;

/// A peer that does not keep to the protocol; the text says in what.
class protocol_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Bytes go in, messages come out. It takes memory for what has come, and for one frame more, whatever a header says.
class frame_reader {
public:
  /// @param message_bytes_max longer ones are refused
  explicit frame_reader(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}
  void allow(std::size_t message_bytes_max) noexcept { message_bytes_max_ = message_bytes_max; }
  /// Throws protocol_error, after which it must not be used.
  void feed(std::span<const std::byte> bytes);
  /// Where the next bytes belong, as far as they are of a message; empty: feed() takes them. Holds until the next call.
  [[nodiscard]] std::span<std::byte> room() noexcept;
  /// So many bytes of room() have been written to; none: nothing happens.
  void filled(std::size_t count);
  [[nodiscard]] std::vector<archive::buffer> take_messages() { return std::exchange(messages_, {}); }
  /// Bytes that the peer has confirmed since the last call.
  [[nodiscard]] std::uint64_t take_confirmed() noexcept { return std::exchange(confirmed_, 0); }
  /// A message of so many bytes has done its work.
  void consumed(std::size_t bytes) noexcept;
  /// What may be confirmed to the peer now.
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
  std::uint32_t length_ = 0, content_read_ = 0; // of the present frame
  std::array<std::byte, 8> number_{};           // content of begin and credit
  std::optional<std::uint64_t> expected_{};     // length of the message that is coming
  std::vector<std::byte> coming_; // up to the end of the present frame
  std::vector<archive::buffer> messages_;
  std::uint64_t confirmed_ = 0;
  std::size_t unconsumed_ = 0; // of whole messages
  std::uint64_t owed_ = 0;     // received and not confirmed
};

/// Messages go in, bytes come out, as far as credits reach. Tensors are written from where they are.
class frame_writer {
public:
  void add(std::shared_ptr<const archive> message);
  void add_heartbeat() { heartbeat_due_ = true; }
  void add_credit(std::uint64_t bytes) { credit_due_ += bytes; }
  void confirmed(std::uint64_t bytes); ///< Throws protocol_error where so many were not sent.
  /// Appends the next frames to `out`, at most about one of the largest; nothing if there is nothing to say.
  void write_to(outgoing_frames& out);
  [[nodiscard]] bool has_something() const noexcept;
  /// Bytes of messages that were added and not yet written.
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }
  /// Bytes of messages that were written, all in all.
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return bytes_written_; }

private:
  struct outgoing {
    std::shared_ptr<const archive> message{};
    std::vector<std::span<const std::byte>> pieces{};
    std::size_t piece = 0, offset = 0; // of the next byte
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
