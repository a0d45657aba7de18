#include "tools/cli/metrics_option.hpp"
#include "runtime/base/node_address.hpp"
#include "tools/cli/http_pages.hpp"
#include "tools/cli/secret_file.hpp"
#include <algorithm>
namespace mneme {

expected<metrics_starter> metrics_option(const metrics_arguments& arguments, std::optional<std::int64_t> local_rank) {
  if (arguments.address.empty())
    return arguments.token_file.empty() ? expected<metrics_starter>()
                                        : failed("", "--metrics-token is for processes with --metrics HOST:PORT");
  auto address = parse_address(arguments.address);
  if (!address)
    return failed("--metrics", address.error().front().text);
  if (const auto port = address->port + local_rank.value_or(0); port > 65'535)
    return failed("--metrics", "port " + std::to_string(port) + " of this rank is too large; expected at most 65535");
  else if (address->port > 0)
    address->port = static_cast<std::uint16_t>(port);
  const auto found = resolved(*address);
  if (!found)
    return failed("--metrics", found.error().front().text);
  const auto token =
      read_secret({.option = "--metrics-token", .file = arguments.token_file, .variable = "MNEME_METRICS_TOKEN"});
  if (!token)
    return tl::unexpected(token.error());
  const bool is_local =
      std::all_of(found->begin(), found->end(), [](const socket_address& place) { return place.is_loopback(); });
  if (!is_local && token->empty())
    return failed("--metrics", "'" + arguments.address +
                                   "' is not on the loopback, where metrics need a token; expected "
                                   "MNEME_METRICS_TOKEN=$(openssl rand -hex 32) in the environment, or "
                                   "--metrics-token FILE");
  return metrics_starter([address = *address, token = *token](process_state state,
                                                              std::FILE* log) -> expected<std::shared_ptr<const void>> {
    auto pages = serve_state({.host = address.host, .port = address.port, .token = token}, std::move(state));
    if (!pages)
      return tl::unexpected(pages.error());
    const auto port = static_cast<std::uint16_t>(pages->port);
    std::fprintf(log, "metrics at http://%s/metrics\n",
                 reachable_address({.host = address.host, .port = port}).text().c_str());
    std::fflush(log);
    return std::move(pages->server);
  });
}

} // namespace mneme
