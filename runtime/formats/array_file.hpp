/// array_file: reads named arrays from a .safetensors or .npz file, or from the .npy files of a folder.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/formats/npy.hpp"
#include <filesystem>
#include <map>
#include <string>
namespace mneme {

struct named_array {
  npy_array content{};
  std::string place{}; ///< Location for diagnostics: "data.npz: train_x" or "train_x.npy".
};
using named_arrays = std::map<std::string, named_array>;

/// Reads the arrays `names`. If `file` is a folder or a .npy file, the arrays are all files NAME.npy of that folder.
/// Sizes are checked before memory is allocated. Any other array is an error that suggests the nearest name. In
/// .safetensors files, arrays of strings are stored in the metadata as JSON lists of strings.
[[nodiscard]] expected<named_arrays> read_array_file(const std::filesystem::path& file,
                                                     const std::vector<std::string>& names);

/// Paths of the files that read_array_file() would read.
[[nodiscard]] std::vector<std::filesystem::path> array_files(const std::filesystem::path& file,
                                                             const std::vector<std::string>& names);

} // namespace mneme
