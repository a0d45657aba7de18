/// connection_loop: the thread that sends and receives the messages of all peers of a process.
#pragma once
#include "runtime/base/node_address.hpp"
#include "runtime/transport/connection.hpp"
#include <map>
#include <mutex>
#include <thread>
#include <variant>
namespace mneme {

/// Number of a connection in this process, from 1. Numbers are never reused.
using connection_id = std::uint64_t;

/// Receives the loop's events on the loop's thread. Callbacks must not block.
class connection_watcher {
public:
  virtual ~connection_watcher() = default;
  /// Called when the peer has sent a valid preamble. @param peer address of the peer @param accepted true if the peer
  /// started the connection
  virtual void opened(connection_id id, const std::string& peer, bool accepted) = 0;
  /// Called for each complete message.
  virtual void received(connection_id id, archive::buffer message) = 0;
  /// Called once when a connection has ended, even if it was never opened. @param reason predicate of a sentence about
  /// the peer @param may_retry true if another attempt may succeed
  virtual void closed(connection_id id, const std::string& peer, const std::string& reason, bool may_retry) = 0;
};

struct connection_stats {
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< Bytes on the network, without the overhead of TLS and TCP.
  std::uint64_t message_bytes_given = 0, message_bytes_sent = 0;
  /// Message bytes that were passed to send() and have not been sent yet.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return message_bytes_given - message_bytes_sent; }
};

/// All functions are thread-safe. The destructor ends all connections.
class connection_loop {
public:
  /// @param watcher must outlive the loop
  connection_loop(tls_identity_ref identity, const connection_limits& limits, connection_watcher& watcher);
  ~connection_loop();
  connection_loop(const connection_loop&) = delete;
  connection_loop& operator=(const connection_loop&) = delete;

  /// Starts to accept connections. Returns the port. Without an identity, only loopback addresses are allowed.
  [[nodiscard]] expected<std::uint16_t> listen(const node_address& address);
  /// Resolves an address. Without an identity, only loopback addresses are allowed.
  [[nodiscard]] expected<resolved_node> place_of(const node_address& address) const;
  /// Checks an address that is already resolved. Without an identity, only loopback addresses are allowed.
  [[nodiscard]] expected<resolved_node> place_of(const node_address& address,
                                                 std::vector<socket_address> addresses) const;
  /// Starts to connect to the addresses of a host, one after the other. opened() or closed() is called later.
  connection_id connect(resolved_node place);
  /// Marks the peer as authenticated.
  void mark_authenticated(connection_id id) { add(trusted{id}); }
  /// Sends a message. No effect if the connection has ended.
  void send(connection_id id, archive message);
  /// Acknowledges `bytes` of a received message, which allows the sender to send as many more.
  void consumed(connection_id id, std::size_t bytes);
  /// Closes a connection after sending queued messages, if possible. Waits at most 1 s for the peer to read them and to
  /// close its end. @param reason passed to closed()
  void close(connection_id id, std::string reason) { add(ended{id, std::move(reason), false}); }
  /// Closes a connection immediately; queued messages are lost. @param reason passed to closed()
  void drop(connection_id id, std::string reason) { add(ended{id, std::move(reason), true}); }
  /// Byte counters of a connection.
  [[nodiscard]] connection_stats figures(connection_id id);

  /// Limit of unauthenticated connections. Above the limit, the loop closes the oldest connection of the address that
  /// has the most unauthenticated connections.
  static constexpr std::size_t unauthenticated_max = 128;
  /// Messages up to this size are sent on the calling thread if nothing is queued. Waking the loop's thread takes 20
  /// us, four times per round of short jobs.
  static constexpr std::size_t at_once_bytes_max = std::size_t{1} << 20;

private:
  struct to_connect {
    connection_id id;
    resolved_node place;
  };
  struct trusted {
    connection_id id;
  };
  struct to_send {
    connection_id id;
    std::shared_ptr<const archive> message;
  };
  struct used {
    connection_id id;
    std::size_t bytes;
  };
  struct ended {
    connection_id id;
    std::string reason;
    bool at_once;
  };
  using order = std::variant<to_connect, trusted, to_send, used, ended>;
  struct held_connection {
    std::unique_ptr<connection> stream{};
    std::string peer{};
    bool accepted = false, is_open_reported = false; // `is_open_reported`: true after opened() was called
    resolved_node others{};                          // addresses to try if the current one fails
    std::optional<std::string> closing{};            // reason for closing the connection after everything has been sent
    bool closes_at_once = false;                     // true: close immediately
    std::optional<std::string> broken{};             // error that another thread has found
  };

  void run(const std::stop_token& stop);
  void add(order request);
  [[nodiscard]] bool sent_at_once(connection_id id, std::shared_ptr<const archive>& message);
  void carry_out(order& request);
  void carry_out(to_connect& request);
  void accept_all(int listener);
  void take_in(owned_descriptor socket, const socket_address& peer);
  void evict_unauthenticated();
  void serve(connection_id id, held_connection& held);
  void check_connection(connection_id id, held_connection& held);
  void end(connection_id id, const std::string& reason, bool may_retry = true);
  [[nodiscard]] int wait_ms(connection::clock::time_point now) const;
  void record_figures();

  tls_identity_ref identity_;
  connection_limits limits_;
  connection_watcher& watcher_;
  owned_descriptor wake_;
  std::mutex held_mutex_; // guards held_; locked before mutex_; other threads use try_lock only
  std::mutex mutex_;      // guards the members from orders_ to consumed_
  std::vector<order> orders_;
  connection_id next_ = 1;
  std::map<connection_id, connection_stats> figures_;
  std::map<connection_id, std::size_t> consumed_; // bytes to acknowledge
  owned_descriptor listener_;
  std::map<connection_id, held_connection> held_;
  std::jthread thread_; // last member, so that the thread ends before its data are destroyed
};

} // namespace mneme
