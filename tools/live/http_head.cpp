#include "tools/live/http_head.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
namespace mneme {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Returns the host of "localhost:8080", "[::1]:8080" or "127.0.0.1".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('['))
    return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, host.find(':'));
}

bool names_this_machine(std::string_view host) {
  constexpr std::array<std::string_view, 3> names{"localhost", "127.0.0.1", "[::1]"};
  return std::any_of(names.begin(), names.end(), [&](auto name) { return same_word(without_port(host), name); });
}

http_request_head refusal(const char* status, std::string_view reason) {
  return {.verdict = http_verdict::refused,
          .answer = fmt::format("HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n"
                                "Connection: close\r\n\r\n{}\n",
                                status, reason.size() + 1, reason)};
}

/// True for headers that are removed: ranges are not supported, and bodies are not read.
bool is_ignored(std::string_view name) {
  constexpr std::array<std::string_view, 6> names{"Range",  "If-Range", "Content-Length", "Transfer-Encoding",
                                                  "Expect", "Upgrade"};
  return std::any_of(names.begin(), names.end(), [&](auto ignored) { return same_word(name, ignored); });
}

} // namespace

http_request_head read_http_head(std::string_view arrived, bool this_machine_only) {
  const auto end = arrived.find("\r\n\r\n");
  if (end == arrived.npos && arrived.size() < http_head_bytes_max)
    return {};
  if (end == arrived.npos || end + 4 > http_head_bytes_max)
    return refusal("431 Request Header Fields Too Large", "the request is too long");
  auto lines = arrived.substr(0, end + 2);
  const auto next_line = [&] {
    const auto line = lines.substr(0, lines.find("\r\n"));
    lines.remove_prefix(line.size() + 2);
    return line;
  };
  const auto request = next_line();
  if (!request.starts_with("GET /") && !request.starts_with("HEAD /"))
    return refusal("405 Method Not Allowed", "expected GET or HEAD");
  http_request_head head{.verdict = http_verdict::whole, .text = std::string(request) + "\r\n"};
  std::size_t hosts = 0;
  std::string_view host;
  while (!lines.empty()) {
    const auto line = next_line();
    const auto name = line.substr(0, line.find(':'));
    if (name.size() == line.size() || name.empty() || name.find_first_of(" \t") != name.npos)
      return refusal("400 Bad Request", "a header of the request has no name");
    if (same_word(name, "Host")) {
      ++hosts;
      host = trim(line.substr(name.size() + 1));
    }
    if (!is_ignored(name))
      head.text += std::string(line) + "\r\n";
  }
  if (hosts != 1)
    return refusal("400 Bad Request", "expected one Host");
  if (this_machine_only && !names_this_machine(host))
    return refusal("421 Misdirected Request", "the request is for another host; expected localhost or 127.0.0.1");
  head.text += "\r\n";
  return head;
}

} // namespace mneme
