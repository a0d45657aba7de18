#include "runtime/modules/code_check.hpp"
#include "runtime/modules/exported_graph.hpp"
#include "runtime/modules/load_module.hpp"
#include "runtime/modules/pickle_check.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
namespace mneme::fuzz {
namespace {

constexpr std::uint64_t inflated_bytes_max = std::uint64_t{1} << 24;
constexpr std::array<std::int64_t, 3> rows_of_run{3, 10, 10};

std::string_view text_of(bytes in) { return {reinterpret_cast<const char*>(in.data()), in.size()}; }

/// Reads an archive and applies the checks that each entry has to pass before LibTorch reads it.
void read_archive(bytes in) {
  const auto entries = zip_entries(in, inflated_bytes_max);
  if (!entries)
    return;
  for (const auto& entry : *entries) {
    const auto content = zip_content(in, entry);
    (void)code_errors({{.name = entry.name, .text = content}});
    (void)pickle_error(content, pickle_root::module, {});
  }
  if (is_exported_program(*entries))
    (void)exported_graph::read(in, *entries, at::Device(at::kCPU));
}

void read_pickle(bytes in) { (void)pickle_error(text_of(in), pickle_root::module, {{"0", 64}}); }
void read_code(bytes in) { (void)code_errors({{.name = "code/__torch__.py", .text = std::string(text_of(in))}}); }

/// Loads a module: our checks, then LibTorch's parsers.
void read_module(bytes in) {
  (void)load_module(file_of(in, "net.pt"), {.input = rows_of_run, .classes = 3, .layers = {.sandbox = false}});
}

} // namespace

std::vector<decoder> module_decoders() {
  return {{"archives", "archive", read_archive},
          {"archives", "pickle", read_pickle},
          {"archives", "code", read_code},
          {"modules", "module", read_module}};
}

} // namespace mneme::fuzz
