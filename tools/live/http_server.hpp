/// http_server: HTTP server with limits on connections, bytes and time.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
struct MHD_Daemon;
namespace mneme {

struct http_request {
  std::string path{};
  bool is_authorized = false; ///< True if the request has the server's token, or if the server needs none.
};

struct http_response {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8"; ///< Content-Type.
  std::string body{};
  /// If not null, this function returns the pieces of the body; nullopt ends the body. It is called on the connection's
  /// thread and may wait.
  std::function<std::optional<std::string>()> next_piece{};
};

/// Responses to a request without the token, and for a page that does not exist.
[[nodiscard]] http_response unauthorized();
[[nodiscard]] http_response not_found();

/// Answers one GET or HEAD request per connection, on a thread of its own. At most `connections_max` are open at a
/// time; others wait in the system's queue. A connection that is silent for two seconds before its request is complete,
/// or does not read its response for thirty, is closed.
class http_server {
public:
  using handler = std::function<http_response(const http_request&)>;
  static constexpr unsigned connections_max = 128;

  /// Listens on the first address of the host that is free. Returns null if there is none.
  /// @param port 0: any free port @param token as in http_options
  /// @param answer called on many threads
  static std::unique_ptr<http_server> listening(const std::string& host, int port, std::string token, handler answer);
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  /// Closes all connections, and waits for their threads.
  ~http_server();

  [[nodiscard]] int port() const;

private:
  struct callbacks; // callbacks of the HTTP library
  http_server(std::string token, handler answer);
  bool listen(const std::string& host, int port);

  const std::string token_;
  const handler answer_;
  MHD_Daemon* daemon_ = nullptr;
};

} // namespace mneme
