/// http_limits: what a server over HTTP may take of its program: few threads, few connections, little time.
#pragma once
#include <httplib.h>
namespace mneme {

/// `threads` answer, and at most `connections_waiting_max` more connections are accepted; those beyond stay with the
/// system, which costs this program no file descriptor. Whoever says nothing for two seconds is dropped, and no other
/// program can listen on the same port. Called before the server listens.
void limit_server(httplib::Server& http, std::size_t threads);

constexpr std::size_t connections_waiting_max = 64;

} // namespace mneme
