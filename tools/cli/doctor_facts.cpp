#include "tools/cli/doctor_facts.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <caf/config.hpp>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <sys/resource.h>
#include <thread>
#include <torch/headeronly/version.h>
namespace mneme {
namespace {

std::string as_gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / static_cast<double>(1 << 30)); }

/// Formats a value of /proc/meminfo such as "MemTotal", which the file gives in KiB.
std::string memory_of(const char* name) {
  const auto kib = std::strtod(value_in("/proc/meminfo", name).c_str(), nullptr);
  return kib > 0.0 ? as_gib(kib * 1024.0) : "unknown";
}

} // namespace

machine_info thread_facts() {
  const auto found = at::get_num_threads();
  disable_intra_op_threads();
  return {{"threads of a run", fmt::format("{}, unless --threads is given", std::thread::hardware_concurrency())},
          {"threads of an operation", fmt::format("{} (LibTorch's default: {})", intra_op_threads(), found)},
          {"variables that choose threads", variables_set({"OMP_NUM_THREADS", "MKL_NUM_THREADS", "MKL_DYNAMIC"})}};
}

machine_info memory_facts() {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  return {
      {"memory", fmt::format("{}, {} available", memory_of("MemTotal"), memory_of("MemAvailable"))},
      {"limit of addresses", limit.rlim_cur == RLIM_INFINITY ? "none" : as_gib(static_cast<double>(limit.rlim_cur))}};
}

machine_info accelerator_facts() {
  const auto chosen = resolve_device("auto"), first = resolve_device("cuda:0");
  return {{"worker.device = \"auto\"", chosen ? *chosen : chosen.error()},
          {"CUDA", first ? "a device is available" : first.error()}};
}

machine_info data_facts() {
  machine_info facts;
  for (const auto& source : data_sources()) {
    if (source.is_own) // `mneme doctor DATA` inspects user data
      continue;
    const auto folders = folders_of(source, {});
    std::string places;
    for (const auto& folder : folders ? *folders : std::vector<std::filesystem::path>{})
      places += (places.empty() ? "" : ", ") + folder.string();
    facts.emplace_back(source.name, !folders ? "not found" : places.empty() ? "generated from the seed" : places);
  }
  return facts;
}

} // namespace mneme
