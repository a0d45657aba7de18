#include "runtime/modules/module_file.hpp"
#include "runtime/modules/exported_graph.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Names the format of an archive that is not a program of torch.export.save, as the end of a sentence.
std::string_view format_of_archive(const std::vector<zip_entry>& entries) {
  const auto holds = [&](std::string_view part) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const zip_entry& entry) { return entry.name.find(part) != std::string::npos; });
  };
  if (holds("/code/"))
    return "TorchScript (torch.jit.save), whose code mneme does not run";
  if (holds("serialized_exported_program.json"))
    return "a program of torch.export of an earlier PyTorch, whose weights are pickled";
  if (holds("data.pkl"))
    return "one of torch.save, a state_dict or a pickled net (weights alone are model.weights, as safetensors)";
  return "an archive without a program";
}

bool is_machine_code(const std::vector<zip_entry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const zip_entry& entry) { return entry.name.find("data/aotinductor/") != std::string::npos; });
}

} // namespace

tl::expected<std::shared_ptr<const module_graph>, std::string>
read_module_graph(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device) {
  const auto failure = [](std::string_view format) {
    return tl::unexpected(
        fmt::format("the file is {}; expected an exported program (.pt2): {}", format, exported::export_advice));
  };
  if (is_machine_code(entries))
    return failure("an AOTInductor package: machine code, which no run loads");
  if (!is_exported_program(entries))
    return failure(format_of_archive(entries));
  auto graph = exported_graph::read(file, entries, device);
  if (!graph)
    return tl::unexpected(std::move(graph.error()));
  return std::make_shared<const exported_graph>(std::move(*graph));
}

} // namespace mneme
