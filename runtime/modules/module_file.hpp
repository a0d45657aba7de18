/// module_file: reads a module file as a module_graph.
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

/// Limit for the total size of an archive's deflated entries after decompression. torch.export.save stores its entries
/// without compression.
constexpr std::uint64_t inflated_bytes_max = std::uint64_t{64} << 20;

/// Reads a file of torch.export.save onto a device. Returns the reason on failure. For a file of another format, such
/// as TorchScript, the reason names the format and the ways to export the net.
[[nodiscard]] tl::expected<std::shared_ptr<const module_graph>, std::string>
read_module_graph(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device);

} // namespace mneme
