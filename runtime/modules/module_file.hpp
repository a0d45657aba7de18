/// module_file: reads a module file of any supported format as a module_graph.
#pragma once
#include "runtime/formats/zip_archive.hpp"
#include "runtime/modules/module_graph.hpp"
#include <c10/core/Device.h>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

enum class module_format : std::uint8_t {
  exported, ///< Written by torch.export.save.
  script    ///< Written by torch.jit.save.
};

/// Detects the format of an archive. For other files the error names the format found and the Python line that exports
/// a program.
[[nodiscard]] tl::expected<module_format, std::string> format_of_module(const std::vector<zip_entry>& entries);

/// Reads a module onto a device. Returns all reasons on failure. @pre archive_errors() is empty for TorchScript
/// @param checked false only in tests of the sandbox
[[nodiscard]] tl::expected<std::shared_ptr<const module_graph>, std::vector<std::string>>
read_module_graph(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device,
                  bool checked);

} // namespace mneme
