/// png: encodes images of a run as PNG.
#pragma once
#include <ATen/core/Tensor.h>
#include <string>
namespace mneme {

/// Returns the bytes of a PNG file with 8 bits per sample. With the same versions of libpng and zlib, equal images have
/// equal bytes. @param pixels [1 or 3, H, W] uint8 on the host, not empty
[[nodiscard]] std::string png_bytes(const at::Tensor& pixels);

} // namespace mneme
