#include "tools/cli/launcher.hpp"
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <vector>
namespace mneme {
namespace {

/// Environment variables with which a launcher numbers its processes. Null if the launcher has no such variable.
struct launcher_variables {
  const char *name, *rank, *size, *local_rank, *local_size;
  const char* job;    // id of the job, the same in all of its processes
  const char* marker; // no other launcher sets this variable
};

// Inner launchers come first, because torchrun and mpirun also run inside jobs of Slurm and Kubernetes.
constexpr std::array<launcher_variables, 6> launchers{{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RUN_ID"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, "PMI_SIZE"},
    {"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr, "RANK"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID", "SLURM_PROCID"},
    {"Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", nullptr, nullptr, "MASTER_ADDR", "JOB_COMPLETION_INDEX"},
}};
constexpr std::size_t torchrun = 0, open_mpi = 1, mpich = 2, by_hand = 3, kubernetes = 5;

constexpr std::uint16_t default_port = 29'500; // the default of torch.distributed

constexpr const char* how_to_start =
    "expected the variables of a launcher; start it with one of: torchrun --no-python --nproc-per-node 3 mneme run "
    "X.toml "
    "--distributed; srun -n 3 mneme run X.toml --distributed; mpirun -n 3 mneme run X.toml --distributed";

class reader {
public:
  explicit reader(const environment_lookup& value_of) : value_of_(value_of) {}

  [[nodiscard]] std::string text(const char* name) const {
    const char* const value = name ? value_of_(name) : nullptr;
    return value ? value : "";
  }
  [[nodiscard]] bool has(const char* name) const { return !text(name).empty(); }
  /// Returns nullopt if the variable is not set. Records an error if it is not a number of at least `low`.
  [[nodiscard]] std::optional<std::int64_t> number(const char* name, std::int64_t low = 0) {
    const auto value = text(name);
    if (value.empty())
      return std::nullopt;
    std::int64_t parsed = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error == std::errc{} && end == value.data() + value.size() && parsed >= low)
      return parsed;
    errors_.push_back({name, fmt::format("is '{}'; expected an integer >= {}", value, low)});
    return std::nullopt;
  }
  void fail(std::string where, std::string text) { errors_.push_back({std::move(where), std::move(text)}); }
  [[nodiscard]] const diagnostics& errors() const { return errors_; }

private:
  const environment_lookup& value_of_;
  diagnostics errors_;
};

std::string describe(const reader& from, const launcher_variables& of) {
  return from.has(of.size) ? fmt::format("{}={} of {}={}", of.rank, from.text(of.rank), of.size, from.text(of.size))
                           : fmt::format("{}={}", of.rank, from.text(of.rank));
}

/// Records an error if RANK, set by the user, contradicts the launcher, or if two MPI libraries contradict each other.
/// Nested launchers may differ.
void check_agreement(reader& from, std::size_t chosen) {
  for (std::size_t i = 0; i < launchers.size(); ++i) {
    const bool is_comparable = i != chosen && (i == by_hand || chosen == by_hand || (chosen == open_mpi && i == mpich));
    const auto &a = launchers[chosen], &b = launchers[i];
    if (!is_comparable || !from.has(b.marker) || chosen == torchrun)
      continue;
    const bool same_size = !from.has(a.size) || !from.has(b.size) || from.text(a.size) == from.text(b.size);
    if (from.text(a.rank) != from.text(b.rank) || !same_size)
      return from.fail(
          "",
          fmt::format(
              "{} and {} contradict each other; unset the variables of the launcher that did not start this process",
              describe(from, a), describe(from, b)));
  }
}

/// Launcher and id of the job; empty if the launcher has no id. Reads no variables of outer launchers, because they may
/// be set in some of the processes only. The host of pod 0 has its name from the Kubernetes Job.
std::string job_of(const reader& from, const launcher_variables& by) {
  const auto id = from.text(by.job);
  if (id.empty() || id == "none") // torchrun without --rdzv-id
    return {};
  const bool has_step = by.job == std::string("SLURM_JOB_ID") && from.has("SLURM_STEP_ID");
  return fmt::format("{} {}{}", by.name, id, has_step ? "." + from.text("SLURM_STEP_ID") : "");
}

/// Port from a hash of the job's id: the same in all processes of a job, and most likely different in other jobs.
std::uint16_t port_of_job(const std::string& job) {
  if (job.empty())
    return default_port;
  std::uint32_t hash = 2'166'136'261; // FNV-1a
  for (const char letter : job)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16'777'619;
  return static_cast<std::uint16_t>(20'000 + hash % 10'000);
}

/// Port of rank 0 under torchrun, which listens on MASTER_PORT itself. A MASTER_PORT that torchrun chose lies in
/// Linux's ephemeral range, where the next port often belongs to an outgoing connection; the result lies below that
/// range.
std::uint16_t port_under_torchrun(std::int64_t master_port) {
  constexpr std::int64_t ephemeral_min = 32'768;
  return static_cast<std::uint16_t>(master_port + 1 < ephemeral_min ? master_port + 1 : 10'000 + master_port % 20'000);
}

/// Port of rank 0: MASTER_PORT, or under torchrun one derived from it; without MASTER_PORT, one derived from the job.
std::uint16_t port_of(reader& from, std::size_t launcher, const std::string& job) {
  const auto port = from.number("MASTER_PORT", 1);
  if (!port && launcher == kubernetes) // pods share no ports
    return default_port;
  if (!port)
    return port_of_job(job.empty() ? from.text("SLURM_JOB_ID") : job);
  if (*port > 65'535)
    from.fail("MASTER_PORT", fmt::format("is {}; expected a port in [1, 65535]", *port));
  return launcher == torchrun ? port_under_torchrun(*port) : static_cast<std::uint16_t>(*port);
}

std::string node_list_of(const reader& from) {
  return from.text(from.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST");
}

bool is_one_host(const reader& from, const launched_rank& rank) {
  if (rank.size == std::int64_t{1} || (rank.size && rank.size == rank.local_size))
    return true;
  const auto nodes = from.text(from.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_JOB_NUM_NODES");
  return nodes == "1";
}

/// Name of rank 0's host for connections from other hosts.
std::string host_of(reader& from) {
  if (from.has("MASTER_ADDR"))
    return from.text("MASTER_ADDR");
  if (!node_list_of(from).empty())
    return first_host(node_list_of(from));
  from.fail("MASTER_ADDR", "is not set, so the host of rank 0 is unknown; expected its name or address, as in "
                           "MASTER_ADDR=$(hostname)");
  return {};
}

} // namespace

std::string first_host(const std::string& node_list) {
  const auto open = node_list.find_first_of("[,");
  if (open == std::string::npos || node_list[open] == ',')
    return node_list.substr(0, open);
  const auto close = node_list.find(']', open);
  const auto end = node_list.find_first_of("-,]", open);
  return node_list.substr(0, open) + node_list.substr(open + 1, end - open - 1) +
         (close == std::string::npos ? "" : node_list.substr(close + 1, node_list.find(',', close) - close - 1));
}

expected<launched_rank> read_launcher(const environment_lookup& value_of) {
  reader from(value_of);
  std::size_t chosen = 0;
  while (chosen < launchers.size() && !from.has(launchers[chosen].marker))
    ++chosen;
  if (chosen == launchers.size())
    return failed("--distributed", how_to_start);
  const auto& by = launchers[chosen];
  check_agreement(from, chosen);
  if (!from.errors().empty()) // other errors would only follow from this one
    return tl::unexpected(from.errors());
  const auto rank = from.number(by.rank);
  launched_rank found{.launcher = by.name,
                      .rank = rank.value_or(0),
                      .job = job_of(from, by),
                      .size = from.number(by.size, 1),
                      .local_rank = from.number(by.local_rank),
                      .local_size = from.number(by.local_size, 1)};
  const bool needs_size = chosen != kubernetes;
  for (const char* name : {by.rank, needs_size ? by.size : by.rank})
    if (!from.has(name))
      from.fail(name, fmt::format("is not set, as {} would; {}", by.name, how_to_start));
  if (found.size && found.rank >= *found.size)
    from.fail(by.rank, fmt::format("is {}; expected less than {}, the value of {}", found.rank, *found.size, by.size));
  found.is_one_host = is_one_host(from, found);
  found.host = found.is_one_host ? "127.0.0.1" : host_of(from);
  found.port = port_of(from, chosen, found.job);
  if (!from.errors().empty())
    return tl::unexpected(from.errors());
  return found;
}

} // namespace mneme
