/// convolutions: one- and two-dimensional convolutions as products with patches (im2col), image by image.
#pragma once
namespace mneme::portable {

/// Replaces the LibTorch operators by these.
void register_convolutions();

} // namespace mneme::portable
