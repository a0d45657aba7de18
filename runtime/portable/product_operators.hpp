/// product_operators: LibTorch's products of matrices and vectors, computed by matrix_products.
#pragma once
namespace mneme::portable {

/// Replaces LibTorch's operators with these functions.
void register_products();

} // namespace mneme::portable
