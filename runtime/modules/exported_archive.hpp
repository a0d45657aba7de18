/// exported_archive: the program and the tensors of a file that torch.export.save has written.
#pragma once
#include "runtime/formats/zip_archive.hpp"
#include "runtime/modules/exported_json.hpp"
#include <ATen/core/Tensor.h>
#include <map>
#include <optional>
#include <span>
#include <vector>
namespace mneme {

/// A parameter, buffer or constant of the file.
struct exported_tensor {
  at::Tensor value{};         ///< Contiguous, on the CPU.
  bool requires_grad = false; ///< As in the file.
  std::string key{};          ///< Equal for names of one tensor: tied weights.
};

struct exported_archive {
  nlohmann::json program{}; ///< models/NAME.json
  std::map<std::string, exported_tensor, std::less<>> tensors{};
};

/// True if the archive is one of torch.export.save, of any kind.
[[nodiscard]] bool is_exported_program(const std::vector<zip_entry>& entries);

/// Reads JSON and raw bytes; pickles in the file are not opened. Throws exported_error if it is not the training IR of
/// one program, if its format has another version, or if a tensor is pickled or lies outside of its bytes. Parameters
/// and buffers take no more memory than the file has bytes, and constants no more.
[[nodiscard]] exported_archive read_exported_archive(std::span<const std::uint8_t> file,
                                                     const std::vector<zip_entry>& entries);

namespace exported {

/// The number that torch._export.serde.schema gives dense layouts.
constexpr std::int64_t strided_layout = 7;

/// The number that torch._export.serde.schema gives a type, as a type of LibTorch. nullopt: none that modules may have.
[[nodiscard]] std::optional<at::ScalarType> scalar_type_of(std::int64_t number);

/// Appended to errors: how a file is written that a run can load.
constexpr const char* export_line =
    "torch.export.save(torch.export.export(net, (rows,), dynamic_shapes=({0: torch.export.Dim(\"B\")},)), \"net.pt2\")";

} // namespace exported
} // namespace mneme
