#include "runtime/modules/exported_graph.hpp"
#include "runtime/modules/load_module.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
namespace mneme::fuzz {
namespace {

constexpr std::uint64_t inflated_bytes_max = std::uint64_t{1} << 24;
constexpr std::array<std::int64_t, 3> rows_of_run{3, 10, 10};

/// Reads an archive and, if it is an exported program, its graph and tensors.
void read_archive(bytes in) {
  const auto entries = zip_entries(in, inflated_bytes_max);
  if (!entries)
    return;
  for (const auto& entry : *entries)
    static_cast<void>(zip_content(in, entry));
  if (is_exported_program(*entries))
    static_cast<void>(exported_graph::read(in, *entries, at::Device(at::kCPU)));
}

/// Loads a module and probes it in this process.
void read_module(bytes in) {
  static_cast<void>(
      load_module(file_of(in, "net.pt2"), {.input = rows_of_run, .classes = 3, .guards = {.sandbox = false}}));
}

} // namespace

std::vector<decoder> module_decoders() {
  return {{"archives", "archive", read_archive}, {"modules", "module", read_module}};
}

} // namespace mneme::fuzz
