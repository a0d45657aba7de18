/// convolutions: those of one and two dimensions as products with patches (im2col), image by image.
#pragma once
namespace mneme::portable {

/// Registers ours for the operators of LibTorch.
void register_convolutions();

} // namespace mneme::portable
