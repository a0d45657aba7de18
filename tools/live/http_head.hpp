/// http_head: parses the head of an HTTP request from the bytes received so far.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
namespace mneme {

constexpr std::size_t http_head_bytes_max = 8192;

/// Next action for a connection.
enum class http_verdict {
  unfinished, ///< Wait for more bytes.
  whole,      ///< The request can be answered.
  refused,    ///< Send `answer` and close.
};

struct http_request_head {
  http_verdict verdict = http_verdict::unfinished;
  std::string text{};   ///< A complete request, without body and range headers.
  std::string answer{}; ///< Complete response to a refused request.
};

/// Parses received bytes. Refuses more than http_head_bytes_max bytes and methods other than GET and HEAD. With
/// `this_machine_only` it also refuses hosts that do not name this machine. This prevents DNS rebinding, with which
/// another site could read the page through the user's browser.
[[nodiscard]] http_request_head read_http_head(std::string_view arrived, bool this_machine_only);

} // namespace mneme
