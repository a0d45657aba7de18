#include "actors/run/node_service.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/live/metrics_server.hpp"
#include <algorithm>
#include <charconv>
#include <cstdlib>
namespace mneme {
namespace {

/// The value of --metrics-port; nothing for "".
expected<std::optional<int>> port_option(const std::string& text) {
  int port = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty())
    return std::nullopt;
  if (error != std::errc{} || end != text.data() + text.size() || port < 0 || port > 65535)
    return failed("--metrics-port", "'" + text + "' is no port; expected an integer in [0, 65535]");
  return port;
}

/// One line, whatever a peer has put into it: no peer writes lines of the log, or fills it.
void say(const std::string& happening) {
  constexpr std::size_t bytes_max = 2000;
  auto line = printable(happening.substr(0, bytes_max));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::printf("node: %s\n", line.c_str());
  std::fflush(stdout);
}

/// Null without a port.
shown_measurements on_port(std::optional<int> port) {
  if (!port)
    return {};
  return [port](std::function<std::vector<measurement>()> measure) -> expected<std::shared_ptr<const void>> {
    auto server = metrics_server::listening(*port, std::move(measure));
    if (!server)
      return tl::unexpected(server.error());
    say("tells Prometheus at http://127.0.0.1:" + std::to_string((*server)->port()) + "/metrics");
    return std::shared_ptr<const void>(std::move(*server));
  };
}

int serve(const serve_arguments& arguments) {
  const auto address = parsed_address(arguments.listen);
  const auto threads = threads_option(arguments.threads);
  const auto metrics = port_option(arguments.metrics_port);
  diagnostics wrong;
  if (!address)
    wrong.push_back({"--listen", address.error().front().text});
  if (!threads)
    wrong.push_back(threads.error().front());
  if (!metrics)
    wrong.push_back(metrics.error().front());
  if (!wrong.empty())
    return print_errors(wrong);
  if (auto ready =
          restart_for(arguments.arithmetic == "portable" ? arithmetic_kind::portable : arithmetic_kind::machine);
      !ready)
    return print_errors(ready.error());
  const auto served = serve_as_node({.listen = *address,
                                     .tls = tls_option(arguments.on),
                                     .threads = *threads,
                                     .native_code = arguments.native_code,
                                     .show_measurements = on_port(*metrics),
                                     .interrupts = &watch_interrupts(),
                                     .say = say});
  if (!served)
    return print_errors(served.error());
  if (*served == node_end::loading)
    std::_Exit(exit_interrupted); // lines are flushed as they come
  return exit_interrupted;
}

int ask(const serve_arguments& arguments) {
  const auto address = parsed_address(arguments.status);
  if (!address)
    return print_errors({{"--status", address.error().front().text}});
  const auto status = status_of_node(*address, tls_option(arguments.on));
  if (!status)
    return print_errors(status.error());
  std::printf("%s\n", printable(*status).c_str());
  return exit_done;
}

} // namespace

int serve_nodes(const serve_arguments& arguments) {
  const int given = static_cast<int>(!arguments.listen.empty()) + static_cast<int>(!arguments.status.empty()) +
                    static_cast<int>(!arguments.keys.empty());
  if (given != 1)
    return bad_input("expected one of mneme node --listen HOST:PORT, --status HOST:PORT and --make-keys DIR");
  if (!arguments.listen.empty())
    return serve(arguments);
  if (!arguments.status.empty())
    return ask(arguments);
  if (const auto made = make_keys(arguments.keys); !made)
    return print_errors(made.error());
  std::printf("%s holds ca.pem, ca.key, node.pem and node.key: keep ca.key, give the others to every machine\n",
              printable(arguments.keys).c_str());
  return exit_done;
}

} // namespace mneme
