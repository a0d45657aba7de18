/// module_file: reads a file of another program as a module_graph.
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
  exported, ///< torch.export.save
  script    ///< torch.jit.save
};

/// The format of an archive. Fails with the kind of any other file, and the line that exports a program.
[[nodiscard]] tl::expected<module_format, std::string> format_of_module(const std::vector<zip_entry>& entries);

/// Reads the module onto a device. Fails with all reasons. @pre archive_refusals() has none for TorchScript
/// @param checked false only in tests of the sandbox alone
[[nodiscard]] tl::expected<std::shared_ptr<const module_graph>, std::vector<std::string>>
read_module_graph(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device,
                  bool checked);

} // namespace mneme
