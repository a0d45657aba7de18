/// png: pictures of a run in a format that everything shows.
#pragma once
#include <ATen/core/Tensor.h>
#include <string>
namespace mneme {

/// The file's bytes: 8 bits a sample, one filter (none). Equal pictures give equal bytes with one version of zlib.
/// @param picture [1 or 3, H, W] uint8 on the host @pre not empty
[[nodiscard]] std::string png_bytes(const at::Tensor& picture);

} // namespace mneme
