/// product_operators: LibTorch's products of matrices and vectors by matrix_products.
#pragma once
namespace mneme::portable {

/// Registers ours for the operators of LibTorch.
void register_products();

} // namespace mneme::portable
