#include "actors/nodes/node_messages.hpp"
#include "runtime/base/arithmetic.hpp"
#include "runtime/base/loaded_libraries.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/transport/frames.hpp"
#include <ATen/Version.h>
#include <ATen/native/DispatchStub.h>
#include <cstdlib>
#include <torch/headeronly/version.h>
namespace mneme {
namespace {

/// Environment variables that select kernels in LibTorch and its libraries.
std::string kernel_variables() {
  std::string text;
  for (const char* name : {"MNEME_KERNELS", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA",
                           "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"})
    if (const char* value = std::getenv(name))
      text += (text.empty() ? "" : ", ") + std::string(name) + "=" + value;
  return text.empty() ? "none" : text;
}

const char* kernels_name() {
  switch (kernels::result_isa()) {
  case kernels::instruction_level::avx512:
    return "AVX-512";
  case kernels::instruction_level::avx2:
    return "AVX2";
  case kernels::instruction_level::generic:
    break;
  }
  return "plain";
}

} // namespace

const fingerprint_fields& program_fingerprint() {
  static const fingerprint_fields facts = [] {
    fingerprint_fields named{{"version of mneme", MNEME_VERSION},
                             {"build of mneme", build_digest()},
                             {"protocol", std::to_string(protocol_version)},
                             {"arithmetic", is_portable() ? portable_word : "machine"},
                             {"LibTorch", TORCH_VERSION},
                             {"instruction set of LibTorch", at::get_cpu_capability()},
                             {"instruction set of mneme's kernels", kernels_name()},
                             {"setting of variables that choose kernels", kernel_variables()}};
    for (auto& library : library_versions())
      named.push_back(std::move(library));
    return named;
  }();
  return facts;
}

std::vector<std::string> differences(const fingerprint_fields& of_run, const fingerprint_fields& of_node) {
  std::vector<std::string> differing;
  const auto value_in = [](const fingerprint_fields& facts, const std::string& name) {
    for (const auto& [known, value] : facts)
      if (known == name)
        return value;
    return std::string("unknown");
  };
  for (const auto& [name, value] : of_run)
    if (const auto other = value_in(of_node, name); other != value)
      differing.push_back("has a different " + name + ": " + other + "; expected that of the run, " + value);
  return differing;
}

std::string printable_ascii(const std::string& text) {
  constexpr std::size_t letters_max = 1000;
  std::string line = text.substr(0, letters_max);
  for (char& letter : line)
    if (letter < ' ' || letter > '~')
      letter = '?';
  return line;
}

archive reader_of(const archive::buffer& message) { return {message, 0, message->size()}; }

} // namespace mneme
