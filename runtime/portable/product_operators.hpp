/// product_operators: LibTorch's products of matrices and vectors, computed by matrix_products.
#pragma once
namespace mneme::portable {

/// Installs these operators in place of LibTorch's.
void register_products();

} // namespace mneme::portable
