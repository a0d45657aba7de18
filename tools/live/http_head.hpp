/// http_head: the first lines of a request over HTTP, as much of them as has arrived.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
namespace mneme {

constexpr std::size_t http_head_bytes_max = 8192;

/// What is to become of a connection.
enum class http_verdict {
  unfinished, ///< More has to arrive.
  whole,      ///< It can be answered.
  refused,    ///< `answer` is sent, and the connection ends.
};

struct http_head {
  http_verdict verdict = http_verdict::unfinished;
  std::string text{};   ///< A whole request, without its body and what asks for one or for ranges.
  std::string answer{}; ///< All of the answer to a refused one.
};

/// Reads what has arrived. Refused are more than http_head_bytes_max bytes, other methods than GET and HEAD, and with
/// `this_machine_only` hosts that do not name this machine: a page of another site may have its name lead here (DNS
/// rebinding), and would read with its visitor's browser what only users of this machine may see.
[[nodiscard]] http_head read_http_head(std::string_view arrived, bool this_machine_only);

} // namespace mneme
