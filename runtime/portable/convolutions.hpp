/// convolutions: one- and two-dimensional convolutions as matrix products with patches (im2col), image by image.
#pragma once
namespace mneme::portable {

/// Replaces LibTorch's operators with these functions.
void register_convolutions();

} // namespace mneme::portable
