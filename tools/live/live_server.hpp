/// live_server: a run's report over HTTP while the run goes on.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/results/live_view.hpp"
#include <memory>
#include <string>
namespace mneme {

struct live_server_options {
  int port = 0;        ///< 0: any that is free.
  std::string token{}; ///< Empty: only this machine is served. Else everybody is who names it.
};

/// `/` is the report as a page that follows the run, `/events` sends it again with every change (server-sent events),
/// `/metrics` is for Prometheus. A token is sent as "Authorization: Bearer TOKEN" or as "?token=TOKEN". Threads of its
/// own read the view; the run never waits for them. Whoever asks slowly, wrongly or a thousand times takes nothing from
/// the run but these few threads.
class live_server {
public:
  /// Listens when this returns. Fails, naming the port, where that cannot be.
  static expected<std::unique_ptr<live_server>> listening(const live_server_options& options,
                                                          std::shared_ptr<live_view> view);
  live_server(const live_server&) = delete;
  live_server& operator=(const live_server&) = delete;
  /// Says goodbye to those who follow, and stops.
  ~live_server();

  [[nodiscard]] int port() const noexcept;
  /// Where the page is, with the token.
  [[nodiscard]] std::string address() const;

private:
  struct parts;
  explicit live_server(std::unique_ptr<parts> own);
  std::unique_ptr<parts> parts_;
};

} // namespace mneme
