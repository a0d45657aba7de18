/// exported_archive: the program and the tensors of a file written by torch.export.save.
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
  bool requires_grad = false; ///< The parameter's requires_grad in the file.
  std::string key{};          ///< Storage key. Tied weights share one key.
};

struct exported_archive {
  nlohmann::json program{}; ///< Content of models/NAME.json.
  std::map<std::string, exported_tensor, std::less<>> tensors{};
};

/// True if the archive was written by torch.export.save, whatever its IR and version.
[[nodiscard]] bool is_exported_program(const std::vector<zip_entry>& entries);

/// Reads JSON and raw tensor bytes; never unpickles. Throws exported_error unless the file holds one program in
/// training IR of the supported format version. Pickled tensors and tensors outside of their bytes are errors, too.
/// Parameters and buffers together take at most as much memory as the file has bytes, and so do constants.
[[nodiscard]] exported_archive read_exported_archive(std::span<const std::uint8_t> file,
                                                     const std::vector<zip_entry>& entries);

namespace exported {

/// Number of the dense (strided) layout in torch._export.serde.schema.
constexpr std::int64_t strided_layout = 7;

/// Converts a type number of torch._export.serde.schema. Returns nullopt if modules may not use the type.
[[nodiscard]] std::optional<at::ScalarType> scalar_type_of(std::int64_t number);

/// Python line that exports a loadable file; appended to errors.
constexpr const char* export_line =
    "torch.export.save(torch.export.export(net, (rows,), dynamic_shapes=({0: torch.export.Dim(\"B\")},)), \"net.pt2\")";

/// Instructions for exporting a net; the end of errors about files of other formats.
constexpr const char* export_advice =
    "export the net by `python -m mneme export-net FILE.py:FUNCTION --rows 3x32x32`, or in Python by "
    "torch.export.save(torch.export.export(net, (rows,), dynamic_shapes=({0: torch.export.Dim(\"B\")},)), \"net.pt2\")";

} // namespace exported
} // namespace mneme
