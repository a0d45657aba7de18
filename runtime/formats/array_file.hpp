/// array_file: named arrays from .safetensors, .npz, or several .npy files in one folder.
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

/// The arrays called `names` among those of the file. A .npy file, or a folder, stands for those that lie beside each
/// other in a folder, NAME.npy each. Sizes are checked before memory is taken; arrays of other names are a diagnostic
/// that names the nearest. In .safetensors files texts are metadata of their name: a JSON list of texts.
[[nodiscard]] expected<named_arrays> read_array_file(const std::filesystem::path& file,
                                                     const std::vector<std::string>& names);

/// Files that read_array_file() reads, by name.
[[nodiscard]] std::vector<std::filesystem::path> array_files(const std::filesystem::path& file,
                                                             const std::vector<std::string>& names);

} // namespace mneme
