/// connection: one end of a non-blocking message stream between two processes, with or without TLS.
#pragma once
#include "runtime/transport/frames.hpp"
#include "runtime/transport/tls.hpp"
#include <chrono>
#include <unistd.h>
namespace mneme {

/// Owns a file descriptor.
class owned_descriptor {
public:
  explicit owned_descriptor(int number = -1) : number_(number) {}
  owned_descriptor(owned_descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~owned_descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }

private:
  int number_;
};

/// Timeouts and size limits for a peer.
struct connection_limits {
  /// Time limit for connecting, TLS and the first message, until the peer is authenticated.
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds idle_timeout{3000}; ///< A peer that sends nothing for this time counts as lost.
  std::size_t first_message_bytes = std::size_t{1} << 16;
  std::size_t message_bytes = std::size_t{4} << 30;
};

class connection {
public:
  using clock = std::chrono::steady_clock;

  /// @param identity null: no encryption @param connecting true while the socket is not connected yet
  /// @param host name of the peer, if this end connects to it; empty if the peer has connected
  connection(owned_descriptor socket, const tls_identity_ref& identity, std::string host, bool connecting,
             const connection_limits& limits, clock::time_point now);
  ~connection(); ///< Notifies the peer that the stream ends regularly.
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] bool is_connected() const noexcept { return stage_ != stage::connecting; }
  /// True if the connection and TLS are established.
  [[nodiscard]] bool is_open() const noexcept { return stage_ == stage::open; }
  /// Events to wait for with poll().
  [[nodiscard]] short awaited_events() const;
  /// Reads and writes as much as possible. Throws protocol_error with the reason if the connection has to be closed.
  void process_io(clock::time_point now);
  /// Throws protocol_error if the peer has exceeded its timeout. Sends a heartbeat if one is due.
  void check_timeouts(clock::time_point now);
  /// Time of the next call of check_timeouts().
  [[nodiscard]] clock::time_point next_timeout() const;
  /// Marks the peer as authenticated, which allows longer timeouts and messages.
  void mark_authenticated(clock::time_point now);

  /// Ends this direction of the stream after all queued messages have been sent, and discards later data of the peer. A
  /// close with unread bytes would make the peer lose messages that it has not read. process_io() or check_timeouts()
  /// throws once the peer has closed the connection, or after 1 s. @pre waiting_bytes() == 0
  void finish_sending(clock::time_point now);
  [[nodiscard]] bool has_finished_sending() const noexcept { return finished_.has_value(); }

  /// Queues a message.
  void send(std::shared_ptr<const archive> message) { writer_.add(std::move(message)); }
  /// True if a message can be sent without delay: the connection is open and nothing is queued.
  [[nodiscard]] bool can_send_at_once() const noexcept {
    return stage_ == stage::open && !finished_ && waiting_bytes() == 0;
  }
  /// Writes as much as possible. Throws protocol_error like process_io().
  void send_now(clock::time_point now);
  /// Records that a received message of this size was consumed, and sends credit if due.
  void consumed(std::size_t bytes);
  [[nodiscard]] std::vector<archive::buffer> take_messages() { return reader_.take_messages(); }
  /// True if the peer has sent a valid preamble.
  [[nodiscard]] bool has_begun() const noexcept { return reader_.has_begun(); }
  [[nodiscard]] bool is_trusted() const noexcept { return authenticated_; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return writer_.waiting_bytes() + out_.left(); }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept { return bytes_received_; }
  [[nodiscard]] std::uint64_t message_bytes_sent() const noexcept { return writer_.bytes_written(); }

private:
  enum class stage : std::uint8_t { connecting, tls, open };
  [[nodiscard]] std::chrono::milliseconds heartbeat_every() const;
  void finish_connecting();
  void shake_hands();
  void read_some();
  void write_some();
  /// Receives bytes. Returns their number, or 0 if none are available. Throws protocol_error at the end of the stream.
  [[nodiscard]] std::size_t receive();
  [[nodiscard]] std::size_t transmit();
  [[nodiscard]] std::size_t moved(std::ptrdiff_t count, const char* act);

  owned_descriptor socket_;
  ssl_session tls_;
  std::string host_; // name that the peer's certificate must state; empty: any
  bool has_secret_;
  stage stage_;
  connection_limits limits_;
  bool authenticated_ = false;
  bool tls_wants_write_ = false;
  frame_reader reader_;
  frame_writer writer_;
  std::vector<std::byte> in_; // bytes that are not message content
  outgoing_frames out_;
  clock::time_point began_, last_received_, spoke_;
  std::optional<clock::time_point> finished_; // time of finish_sending()
  std::uint64_t bytes_sent_ = 0, bytes_received_ = 0;
};

} // namespace mneme
