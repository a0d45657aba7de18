#include "actors/run/machine_info.hpp"
#include "runtime/base/loaded_libraries.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/results/run_directory.hpp"
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/native/DispatchStub.h>
#include <caf/config.hpp>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gnu/libc-version.h>
#include <sched.h>
#include <thread>
#include <torch/headeronly/version.h>
namespace mneme {
namespace {

const char* name_of(kernels::instruction_level level) {
  switch (level) {
  case kernels::instruction_level::avx512:
    return "AVX-512";
  case kernels::instruction_level::avx2:
    return "AVX2 with FMA";
  case kernels::instruction_level::generic:
    break;
  }
  return "none beyond the compiler's";
}

/// First line of a text, because library versions such as oneMKL's have several.
std::string first_line(const std::string& text) {
  auto from = text.find_first_not_of(" \t\n- ");
  from = from == std::string::npos ? 0 : from;
  return text.substr(from, text.find('\n', from) - from);
}

/// Number of cores that the process may use; under taskset and in containers fewer than the machine has.
int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

} // namespace

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

std::string variables_set(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names)
    if (const char* value = std::getenv(name))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "none" : text;
}

machine_info processor_info() {
  const auto model = value_in("/proc/cpuinfo", "model name");
  return {{"processor", model.empty() ? "unknown" : model},
          {"cores",
           fmt::format("{}, of which this process may use {}", std::thread::hardware_concurrency(), usable_cores())},
          {"mneme's kernels", name_of(kernels::result_isa())},
          {"ATen's kernels", at::get_cpu_capability()},
          {"variables that choose kernels",
           variables_set({"MNEME_KERNELS", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA",
                          "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"})}};
}

machine_info library_info() {
  machine_info facts{{"mneme", MNEME_VERSION},
                     {"build", build_digest()},
                     {"compiler", __VERSION__},
                     {"LibTorch", TORCH_VERSION},
                     {"MKL", first_line(at::get_mkl_version())},
                     {"oneDNN", first_line(at::get_mkldnn_version())},
                     {"OpenMP", first_line(at::get_openmp_version())},
                     {"C library", gnu_get_libc_version()},
                     {"CAF", fmt::format("{}.{}.{}", CAF_MAJOR_VERSION, CAF_MINOR_VERSION, CAF_PATCH_VERSION)}};
  for (auto& library : library_versions())
    facts.push_back(std::move(library));
  return facts;
}

} // namespace mneme
