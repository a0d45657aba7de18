/// png: encodes images of a run as PNG.
#pragma once
#include <ATen/core/Tensor.h>
#include <string>
namespace mneme {

/// Returns the bytes of the file, with 8 bits per sample. Equal images give equal bytes with one version of libpng and
/// zlib.
/// @param picture [1 or 3, H, W] uint8 on the host @pre not empty
[[nodiscard]] std::string png_bytes(const at::Tensor& picture);

} // namespace mneme
