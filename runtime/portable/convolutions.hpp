/// convolutions: one- and two-dimensional convolutions as products with patches (im2col), image by image.
#pragma once
namespace mneme::portable {

/// Installs these operators in place of LibTorch's.
void register_convolutions();

} // namespace mneme::portable
