/// array_file: reads named arrays from .safetensors, .npz, or several .npy files in one folder.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/formats/npy.hpp"
#include <filesystem>
#include <map>
#include <string>
namespace mneme {

struct named_array {
  npy_array content{};
  std::string place{}; ///< "data.npz: train_x", "train_x.npy": as diagnostics name it.
};
using named_arrays = std::map<std::string, named_array>;

/// Reads the arrays `names` of the file. A folder, or one of its .npy files, stands for all NAME.npy of the folder.
/// Sizes are checked before memory is allocated. An array with another name is a diagnostic with the nearest known
/// name. In .safetensors files, arrays of strings are stored as metadata: a JSON list of strings.
[[nodiscard]] expected<named_arrays> read_array_file(const std::filesystem::path& file,
                                                     const std::vector<std::string>& names);

/// Paths of the files that read_array_file() reads.
[[nodiscard]] std::vector<std::filesystem::path> array_files(const std::filesystem::path& file,
                                                             const std::vector<std::string>& names);

} // namespace mneme
