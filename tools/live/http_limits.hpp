/// http_limits: a server over HTTP that takes little of its program: threads, connections, bytes and time.
#pragma once
#include <chrono>
#include <httplib.h>
#include <memory>
#include <string>
namespace mneme {

struct http_limits {
  std::size_t threads = 4;       ///< Which answer.
  bool this_machine_only = true; ///< Whoever names another host is refused (see http_head.hpp).
};

/// Answers a request per connection, GET or HEAD, whole and never in ranges. A connection takes a thread only when its
/// request has arrived; those that have not said it all wait in places of their own, for `silent_max` at most, and
/// where more come than there are places the longest silent one is dropped. An answer is written for `answer_max` at
/// most; where it goes on for ever, each piece is. No other program can listen on the same port.
class limited_http_server final : public httplib::Server {
public:
  static constexpr std::size_t connections_waiting_max = 64;
  static constexpr std::chrono::milliseconds silent_max{2000}, answer_max{30'000};

  explicit limited_http_server(const http_limits& limits);
  limited_http_server(const limited_http_server&) = delete;
  limited_http_server& operator=(const limited_http_server&) = delete;
  ~limited_http_server() override;

private:
  class waiting_room;
  bool process_and_close_socket(socket_t connection) override; // called by the thread that accepts
  void answer(socket_t connection, const std::string& head);

  std::unique_ptr<waiting_room> room_;
};

} // namespace mneme
