#include "tools/cli/cluster_options.hpp"
#include "tools/cli/launcher.hpp"
#include "tools/cli/secret_file.hpp"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>
namespace mneme {
namespace {

constexpr const char* secret_line = "export MNEME_SECRET=$(openssl rand -hex 32)";

/// Number of threads of a rank: its share of the machine's cores, or all cores to which the launcher has bound it.
std::int64_t threads_of_rank(const launched_rank& rank) {
  const auto usable = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const bool is_bound = usable < ::sysconf(_SC_NPROCESSORS_ONLN);
  return is_bound || !rank.local_size ? usable : std::max<std::int64_t>(1, usable / *rank.local_size);
}

void print_line(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

void print_address(const node_address& address) {
  print_line("nodes join with mneme node --join " + reachable_address(address).text());
}

expected<cluster_plan> plan_rank(const cluster_arguments& arguments, std::int64_t threads, credentials trust) {
  auto found = read_launcher([](const char* name) -> const char* { return std::getenv(name); });
  if (!found)
    return tl::unexpected(found.error());
  auto& rank = *found;
  if (!arguments.accept.empty()) {
    const auto address = parse_address(arguments.accept);
    if (!address || address->port == 0)
      return failed("--accept", "'" + arguments.accept + "': expected HOST:PORT at which all ranks reach rank 0");
    rank.host = address->host;
    rank.port = address->port;
    rank.is_one_host = address->host == "127.0.0.1" || address->host == "localhost" || address->host == "::1";
  }
  if (!rank.is_one_host && !trust.any())
    return failed("--distributed",
                  fmt::format("needs a secret on more than one host; write {} before the line of {}{}", secret_line,
                              rank.launcher,
                              rank.launcher == "RANK and WORLD_SIZE"
                                  ? ", or set LOCAL_WORLD_SIZE to WORLD_SIZE if all ranks are on this machine"
                                  : ""));
  cluster_plan plan{.threads = threads > 0 ? threads : threads_of_rank(rank)};
  if (rank.rank > 0) {
    plan.node = node_settings{.join = {.host = rank.host, .port = rank.port},
                              .trust = std::move(trust),
                              .threads = plan.threads,
                              .local_rank = rank.local_rank,
                              .idle_timeout = std::chrono::minutes(10),
                              .rank = rank.rank,
                              .job = rank.job,
                              .grace = std::chrono::seconds(20)};
    return plan;
  }
  if (rank.size == std::int64_t{1})
    return plan;
  const node_address reached{.host = rank.host, .port = rank.port};
  plan.accept = {.address =
                     node_address{.host = rank.is_one_host ? rank.host : all_interfaces(reached), .port = rank.port},
                 .trust = std::move(trust),
                 .nodes_min = arguments.workers_min > 0 ? 0 : rank.size.value_or(1) - 1,
                 .ranks = rank.size.value_or(1) - 1,
                 .job = rank.job,
                 .workers_min = arguments.workers_min,
                 .computes = true,
                 .log = print_line};
  return plan;
}

} // namespace

expected<credentials> trust_option(const trust_arguments& arguments) {
  credentials given{.certificate = arguments.certificate, .key = arguments.key, .authority = arguments.authority};
  auto secret = read_secret({.option = "--secret",
                             .file = arguments.secret,
                             .variable = "MNEME_SECRET",
                             .reads_variable = !given.has_files()});
  if (!secret)
    return tl::unexpected(secret.error());
  given.secret = std::move(*secret);
  return given;
}

expected<cluster_plan> plan_cluster(const cluster_arguments& arguments, std::int64_t threads) {
  const bool accepts = arguments.distributed || !arguments.accept.empty();
  if (accepts && !has_nodes())
    return failed(arguments.distributed ? "--distributed" : "--accept", no_nodes_in_build);
  const auto& files = arguments.trust;
  if (!accepts && !(files.secret + files.certificate + files.key + files.authority).empty())
    return failed("", "--secret, --cert, --key and --ca are for runs with --accept or --distributed");
  if (!accepts && arguments.workers_min > 0)
    return failed("", "--workers-min is for runs with --accept or --distributed");
  if (!accepts)
    return cluster_plan{.threads = threads};
  auto trust = trust_option(arguments.trust);
  if (!trust)
    return tl::unexpected(trust.error());
  if (arguments.distributed)
    return plan_rank(arguments, threads, std::move(*trust));
  const auto address = parse_address(arguments.accept);
  if (!address)
    return failed("--accept", address.error().front().text);
  return cluster_plan{.accept = {.address = *address,
                                 .trust = std::move(*trust),
                                 .workers_min = arguments.workers_min,
                                 .listening = print_address,
                                 .log = print_line},
                      .threads = threads};
}

} // namespace mneme
