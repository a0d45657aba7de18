/// connection_loop: the thread that carries messages to and from all peers of a process.
#pragma once
#include "runtime/transport/connection.hpp"
#include "runtime/transport/node_address.hpp"
#include <map>
#include <mutex>
#include <thread>
#include <variant>
namespace mneme {

/// Connections of a process count from 1; no number comes twice.
using connection_id = std::uint64_t;

/// Is told what happens, on the loop's thread. It must not wait.
class connection_watcher {
public:
  virtual ~connection_watcher() = default;
  /// The peer speaks the protocol. @param peer its address @param accepted it has come by itself
  virtual void opened(connection_id id, const std::string& peer, bool accepted) = 0;
  virtual void received(connection_id id, archive::buffer message) = 0;
  /// It is over, whoever ended it; `why` goes on after the peer's name. Comes once, opened or not.
  virtual void closed(connection_id id, const std::string& peer, const std::string& why) = 0;
};

struct connection_figures {
  std::uint64_t bytes_sent = 0, bytes_received = 0; ///< On the wire, but for TLS' and TCP's own.
  std::uint64_t message_bytes_given = 0, message_bytes_sent = 0;
  /// Messages that were given to send() and have not left.
  [[nodiscard]] std::uint64_t waiting_bytes() const noexcept { return message_bytes_given - message_bytes_sent; }
};

/// Safe to use from several threads. All connections end with it.
class connection_loop {
public:
  /// @param watcher outlives the loop
  connection_loop(tls_identity_ref identity, const connection_limits& limits, connection_watcher& watcher);
  ~connection_loop();
  connection_loop(const connection_loop&) = delete;
  connection_loop& operator=(const connection_loop&) = delete;

  /// Takes connections from now on; answers with the port. Without an identity on the loopback only.
  [[nodiscard]] expected<std::uint16_t> listen(const node_address& address);
  /// Where a node is; without an identity on the loopback only.
  [[nodiscard]] expected<node_place> place_of(const node_address& address) const;
  /// Ends in opened() or in closed(). An address that cannot be reached is followed by the next.
  connection_id connect(node_place place);
  void trust(connection_id id) { add(trusted{id}); }
  void send(connection_id id, archive message);
  /// A message that was received has done its work: its sender may send as many bytes more.
  void consumed(connection_id id, std::size_t bytes);
  /// After what was sent before has left, or cannot. @param why as for closed()
  void close(connection_id id, std::string why) { add(ended{id, std::move(why), false}); }
  /// Whatever waits to be sent: the peer may not read it.
  void drop(connection_id id, std::string why) { add(ended{id, std::move(why), true}); }
  [[nodiscard]] connection_figures figures(connection_id id);

  /// Connections that have come and are not trusted yet. For one more, the first of the address that has most leaves.
  static constexpr std::size_t strangers_max = 32;
  /// Messages up to this length leave on the thread that sends them, where nothing is on its way: waking the loop's
  /// thread takes 20 us, four times in a round of short jobs.
  static constexpr std::size_t at_once_bytes_max = std::size_t{1} << 20;

private:
  struct to_connect {
    connection_id id;
    node_place place;
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
    std::string why;
    bool at_once;
  };
  using order = std::variant<to_connect, trusted, to_send, used, ended>;
  struct held_connection {
    std::unique_ptr<connection> stream{};
    std::string peer{};
    bool accepted = false, told = false;  // that it is open
    node_place others{};                  // where it is tried if it cannot be reached
    std::optional<std::string> closing{}; // once all is sent,
    bool closes_at_once = false;          // or before
    std::optional<std::string> broken{};  // why it cannot go on, found by another thread
  };

  void run(const std::stop_token& stop);
  void add(order request);
  [[nodiscard]] bool sent_at_once(connection_id id, std::shared_ptr<const archive>& message);
  void carry_out(order& request);
  void carry_out(to_connect& request);
  void accept_all(int listener);
  void take_in(owned_descriptor socket, const socket_address& peer);
  void make_place_for_stranger();
  void serve(connection_id id, held_connection& held);
  void look_after(connection_id id, held_connection& held);
  void end(connection_id id, const std::string& why);
  [[nodiscard]] int wait_ms(connection::clock::time_point now) const;
  void note_figures();

  tls_identity_ref identity_;
  connection_limits limits_;
  connection_watcher& watcher_;
  owned_descriptor wake_;
  std::mutex held_mutex_; // guards held_; taken before mutex_, and by other threads only where it is free
  std::mutex mutex_;      // guards what follows, up to listener_
  std::vector<order> orders_;
  connection_id next_ = 1;
  std::map<connection_id, connection_figures> figures_;
  std::map<connection_id, std::size_t> consumed_; // and not yet told
  owned_descriptor listener_;
  std::map<connection_id, held_connection> held_;
  std::jthread thread_; // last: it ends before what it uses
};

} // namespace mneme
