#include "runtime/modules/module_file.hpp"
#include "runtime/modules/exported_graph.hpp"
#include "runtime/modules/script_graph.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

tl::expected<module_format, std::string> format_of_module(const std::vector<zip_entry>& entries) {
  const auto holds = [&](std::string_view part) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const zip_entry& entry) { return entry.name.find(part) != std::string::npos; });
  };
  const auto failure = [](std::string_view kind) {
    return tl::unexpected(fmt::format("the file is {}; expected an exported program: {}", kind, exported::export_line));
  };
  if (holds("data/aotinductor/"))
    return failure("an AOTInductor package: machine code, which no run loads");
  if (is_exported_program(entries))
    return module_format::exported;
  if (holds("/code/"))
    return module_format::script;
  if (holds("serialized_exported_program.json"))
    return failure("a program of torch.export of an earlier PyTorch, whose weights are pickled");
  if (holds("data.pkl"))
    return failure(
        "one of torch.save, a state_dict or a pickled net (weights alone are model.weights, as safetensors)");
  return failure("an archive without a program");
}

tl::expected<std::shared_ptr<const module_graph>, std::vector<std::string>>
read_module_graph(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device,
                  bool checked) {
  const auto format = format_of_module(entries);
  if (!format)
    return tl::unexpected(std::vector{format.error()});
  if (*format == module_format::exported) {
    auto graph = exported_graph::read(file, entries, device);
    if (!graph)
      return tl::unexpected(std::vector{std::move(graph.error())});
    return std::make_shared<const exported_graph>(std::move(*graph));
  }
  auto graph = script_graph::read(file, device, checked);
  if (!graph)
    return tl::unexpected(std::move(graph.error()));
  return std::make_shared<const script_graph>(std::move(*graph));
}

} // namespace mneme
