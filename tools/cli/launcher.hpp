/// launcher: rank of this process among those that torchrun, srun, mpirun or Kubernetes has started.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <functional>
#include <optional>
namespace mneme {

/// Returns the value of an environment variable; null if it is not set.
using environment_lookup = std::function<const char*(const char* name)>;

struct launched_rank {
  std::string launcher{};                   ///< "torchrun"
  std::int64_t rank = 0;                    ///< Rank 0 runs the scenario; all others join it.
  std::string job{};                        ///< "Slurm 77.0": id of the job, the same in all of its processes and
                                            ///< different in other jobs; empty if the launcher has none.
  std::optional<std::int64_t> size{};       ///< Number of processes; nullopt if the launcher does not set it.
  std::optional<std::int64_t> local_rank{}; ///< Index among the processes of this machine.
  std::optional<std::int64_t> local_size{}; ///< Number of processes of this machine.
  bool is_one_host = false;                 ///< true: all processes run on this machine.
  std::string host{};                       ///< Host on which rank 0 accepts the others.
  std::uint16_t port = 0;
};

/// Reads the variables of the launcher that has started this process. Fails without a launcher, if variables are
/// missing or malformed, and if two launchers contradict each other.
[[nodiscard]] expected<launched_rank> read_launcher(const environment_lookup& value_of);

/// Returns the first host of a Slurm node list: "node03" for "node[03-07,9],other".
[[nodiscard]] std::string first_host(const std::string& node_list);

} // namespace mneme
