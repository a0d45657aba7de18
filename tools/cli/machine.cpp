#include "tools/cli/machine.hpp"
#include "runtime/base/one_thread.hpp"
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

/// What stands behind "NAME :" in a file of lines "name: value", as /proc has them; empty if there is no such line.
std::string value_in(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos)
      continue;
    const auto first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return {};
}

/// Cores that the process may use: fewer than the machine has under taskset and in containers.
int allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

const char* name_of(kernels::instruction_level level) {
  switch (level) {
  case kernels::instruction_level::wide:
    return "AVX-512";
  case kernels::instruction_level::half:
    return "AVX2 with FMA";
  case kernels::instruction_level::plain:
    break;
  }
  return "none beyond the compiler's";
}

/// "MKL_CBWR=AVX2, OMP_NUM_THREADS=1": those of the variables that are set.
std::string variables_set(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names)
    if (const char* value = std::getenv(name))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "none" : text;
}

/// "Intel(R) oneAPI ... Product Build ... for Intel(R) 64 architecture applications" by its first line.
std::string first_line(const std::string& text) {
  auto from = text.find_first_not_of(" \t\n- ");
  from = from == std::string::npos ? 0 : from;
  return text.substr(from, text.find('\n', from) - from);
}

std::string as_gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / static_cast<double>(1 << 30)); }

/// "MemTotal", as /proc/meminfo has it in kB.
std::string memory_of(const char* name) {
  const auto kib = std::strtod(value_in("/proc/meminfo", name).c_str(), nullptr);
  return kib > 0.0 ? as_gib(kib * 1024.0) : "unknown";
}

} // namespace

machine_facts processor_facts() {
  const auto model = value_in("/proc/cpuinfo", "model name");
  return {{"processor", model.empty() ? "unknown" : model},
          {"cores",
           fmt::format("{}, of which this process may use {}", std::thread::hardware_concurrency(), allowed_cores())},
          {"mneme's kernels", name_of(kernels::machine_level())},
          {"ATen's kernels", at::get_cpu_capability()},
          {"variables that choose kernels",
           variables_set({"MNEME_KERNELS", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA",
                          "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"})}};
}

machine_facts library_facts() {
  return {{"mneme", MNEME_VERSION},
          {"compiler", __VERSION__},
          {"LibTorch", TORCH_VERSION},
          {"MKL", first_line(at::get_mkl_version())},
          {"oneDNN", first_line(at::get_mkldnn_version())},
          {"OpenMP", first_line(at::get_openmp_version())},
          {"CAF", fmt::format("{}.{}.{}", CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION)}};
}

machine_facts thread_facts() {
  const auto found = at::get_num_threads();
  compute_on_one_thread();
  return {{"threads of a run", fmt::format("{}, unless --threads says otherwise", std::thread::hardware_concurrency())},
          {"threads of an operation", fmt::format("{} (LibTorch would take {})", threads_of_an_operation(), found)},
          {"variables that choose threads", variables_set({"OMP_NUM_THREADS", "MKL_NUM_THREADS", "MKL_DYNAMIC"})}};
}

machine_facts memory_facts() {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  return {
      {"memory", fmt::format("{}, {} available", memory_of("MemTotal"), memory_of("MemAvailable"))},
      {"limit of addresses", limit.rlim_cur == RLIM_INFINITY ? "none" : as_gib(static_cast<double>(limit.rlim_cur))}};
}

machine_facts device_facts() {
  const auto chosen = resolve_device("auto"), first = resolve_device("cuda:0");
  return {{"worker.device = \"auto\"", chosen ? *chosen : chosen.error()},
          {"CUDA", first ? "there is a device" : first.error()}};
}

machine_facts data_facts() {
  machine_facts facts;
  for (const auto& source : data_sources()) {
    if (source.is_own) // `mneme doctor DATA` tells of these
      continue;
    const auto folders = folders_of(source, {});
    std::string places;
    for (const auto& folder : folders ? *folders : std::vector<std::filesystem::path>{})
      places += (places.empty() ? "" : ", ") + folder.string();
    facts.emplace_back(source.name, !folders ? "not found" : places.empty() ? "made from the seed" : places);
  }
  return facts;
}

} // namespace mneme
