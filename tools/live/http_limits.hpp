/// http_limits: HTTP server with limits on threads, connections, bytes and time.
#pragma once
#include <chrono>
#include <httplib.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
namespace mneme {

struct http_limits {
  std::size_t threads = 4;       ///< Number of threads that answer requests.
  bool this_machine_only = true; ///< true: requests for other hosts are refused (see http_head.hpp).
};

/// Answers one GET or HEAD request per connection, without ranges. A connection uses a thread only once its request is
/// complete. An incomplete request waits for at most `silent_max`. If there are too many, the one that has been silent
/// for the longest time is closed. Writing a response, or a piece of an endless one, takes at most `answer_max`. No
/// other program can listen on the same port.
class bounded_http_server final : public httplib::Server {
public:
  static constexpr std::size_t connections_waiting_max = 64;
  static constexpr std::chrono::milliseconds silent_max{2000}, answer_max{30'000};

  explicit bounded_http_server(const http_limits& limits);
  bounded_http_server(const bounded_http_server&) = delete;
  bounded_http_server& operator=(const bounded_http_server&) = delete;
  ~bounded_http_server() override;

  /// Listens on a separate thread of this name. Returns the port; nullopt if nothing can listen there.
  /// @param port 0: any free port
  [[nodiscard]] std::optional<int> start(const std::string& host, int port, const char* thread_name);
  /// Aborts all responses and ends the thread of start().
  void end();

private:
  class waiting_room;
  bool process_and_close_socket(socket_t connection) override; // runs on the accepting thread
  void answer(socket_t connection, const std::string& head);

  std::unique_ptr<waiting_room> room_;
  std::thread listener_;
};

/// True if the request has the token, as "Authorization: Bearer TOKEN" or "?token=TOKEN", or if the token is empty.
[[nodiscard]] bool is_authorized(const httplib::Request& request, const std::string& token);
/// Answers a request without the token.
void refuse_unauthorized(httplib::Response& response);

} // namespace mneme
