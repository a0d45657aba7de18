#include "tools/live/http_server.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/node_address.hpp"
#include <algorithm>
#include <array>
#include <microhttpd.h>
#include <strings.h>
#include <tuple>
#include <vector>
namespace mneme {
namespace {

constexpr unsigned silent_max_s = 2, response_max_s = 30;
constexpr std::size_t request_bytes_max = 32 << 10, stack_bytes = 1 << 20, piece_bytes = 64 << 10;

/// Constant-time comparison, so that timing reveals nothing about the token.
bool same_text(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0U : 1U;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ (b.empty() ? '\0' : b[i % b.size()]));
  return difference == 0;
}

std::string_view text_or_empty(const char* text) { return text == nullptr ? std::string_view{} : text; }

bool has_token(MHD_Connection* connection, const std::string& token) {
  return token.empty() ||
         same_text(text_or_empty(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization")),
                   "Bearer " + token) ||
         same_text(text_or_empty(MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token")), token);
}

/// Values of the Host header.
std::vector<std::string> hosts_of(MHD_Connection* connection) {
  std::vector<std::string> hosts;
  const auto add = [](void* to, MHD_ValueKind, const char* name, const char* value) {
    if (strcasecmp(name, "Host") == 0)
      static_cast<std::vector<std::string>*>(to)->emplace_back(text_or_empty(value));
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_HEADER_KIND, add, &hosts);
  return hosts;
}

/// True for "localhost:8080", "[::1]:8080" or "127.0.0.1".
bool names_this_machine(const std::string& host) {
  constexpr std::array<const char*, 3> names{"localhost", "127.0.0.1", "[::1]"};
  const auto name = host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
  return std::any_of(names.begin(), names.end(),
                     [&](const char* local) { return strcasecmp(name.c_str(), local) == 0; });
}

/// A body that is computed while it is sent.
struct piece_reader {
  std::function<std::optional<std::string>()> next{};
  std::string piece{};
  std::size_t sent = 0; ///< Bytes of the piece.

  static ssize_t read(void* self, std::uint64_t, char* to, std::size_t size) {
    auto& body = *static_cast<piece_reader*>(self);
    try {
      return body.read(to, size);
    } catch (...) {
      return MHD_CONTENT_READER_END_WITH_ERROR; // closes the connection
    }
  }
  ssize_t read(char* to, std::size_t size) {
    while (sent == piece.size()) {
      auto following = next();
      if (!following)
        return MHD_CONTENT_READER_END_OF_STREAM;
      piece = std::move(*following);
      sent = 0;
    }
    const auto count = piece.copy(to, size, sent);
    sent += count;
    return static_cast<ssize_t>(count);
  }
  static void destroy(void* self) { delete static_cast<piece_reader*>(self); }
};

MHD_Result send_response(MHD_Connection* connection, http_response from) {
  const bool is_stream = from.next_piece != nullptr;
  auto pieces = std::make_unique<piece_reader>(piece_reader{.next = std::move(from.next_piece)});
  MHD_Response* const response =
      is_stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, piece_bytes, &piece_reader::read, pieces.get(),
                                                    &piece_reader::destroy)
                : MHD_create_response_from_buffer(from.body.size(), from.body.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) // no memory: the library closes the connection
    return MHD_NO;
  if (is_stream)
    std::ignore = pieces.release(); // destroyed with the response
  MHD_add_response_header(response, "Content-Type", from.type.c_str());
  MHD_add_response_header(response, "Connection", "close");
  if (is_stream)
    MHD_add_response_header(response, "Cache-Control", "no-store");
  if (from.status == MHD_HTTP_UNAUTHORIZED)
    MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, response_max_s);
  const auto queued = MHD_queue_response(connection, from.status, response);
  MHD_destroy_response(response); // the connection holds the response until it is sent
  return queued;
}

} // namespace

http_response unauthorized() {
  return {.status = MHD_HTTP_UNAUTHORIZED,
          .body = "a token is needed: ?token=TOKEN, or the header \"Authorization: Bearer TOKEN\"\n"};
}

http_response not_found() { return {.status = MHD_HTTP_NOT_FOUND, .body = "no such page\n"}; }

/// The library is written in C, so no exception may leave these functions.
struct http_server::callbacks {
  /// Refusing other hosts prevents DNS rebinding, with which another site could read the page through the user's
  /// browser.
  static http_response response_to(const http_server& server, MHD_Connection* connection, std::string_view method,
                                   const char* path) {
    if (method != "GET" && method != "HEAD")
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "expected GET or HEAD\n"};
    const auto hosts = hosts_of(connection);
    if (hosts.size() != 1)
      return {.status = MHD_HTTP_BAD_REQUEST, .body = "expected one Host\n"};
    if (server.token_.empty() && !names_this_machine(hosts.front()))
      return {.status = MHD_HTTP_MISDIRECTED_REQUEST,
              .body = "the request is for another host; expected localhost or 127.0.0.1\n"};
    return server.answer_({.path = path, .is_authorized = has_token(connection, server.token_)});
  }

  static MHD_Result answer(void* server, MHD_Connection* connection, const char* path, const char* method, const char*,
                           const char*, std::size_t*, void**) {
    http_response response;
    const auto failure = exception_message_of(
        [&] { response = response_to(*static_cast<const http_server*>(server), connection, method, path); });
    if (!failure.empty())
      response = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .body = failure + "\n"};
    return send_response(connection, std::move(response));
  }
};

http_server::http_server(std::string token, handler answer) : token_(std::move(token)), answer_(std::move(answer)) {}

bool http_server::listen(const std::string& host, int port) {
  const auto addresses = resolved({.host = host, .port = static_cast<std::uint16_t>(port)});
  if (!addresses)
    return false;
  for (const auto& address : *addresses) {
    const unsigned family = address.storage.ss_family == AF_INET6 ? MHD_USE_IPv6 : MHD_NO_FLAG;
    daemon_ = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC | family, 0,
        nullptr, nullptr, &callbacks::answer, this, MHD_OPTION_SOCK_ADDR, address.get(), MHD_OPTION_CONNECTION_LIMIT,
        connections_max, MHD_OPTION_CONNECTION_TIMEOUT, silent_max_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        request_bytes_max, MHD_OPTION_THREAD_STACK_SIZE, stack_bytes, MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024U,
        MHD_OPTION_END);
    if (daemon_ != nullptr)
      return true;
  }
  return false;
}

std::unique_ptr<http_server> http_server::listening(const std::string& host, int port, std::string token,
                                                    handler answer) {
  std::unique_ptr<http_server> server(new http_server(std::move(token), std::move(answer)));
  return server->listen(host, port) ? std::move(server) : nullptr;
}

http_server::~http_server() {
  if (daemon_ != nullptr)
    MHD_stop_daemon(daemon_);
}

int http_server::port() const { return MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port; }

} // namespace mneme
