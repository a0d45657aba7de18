/// decompositions: Cholesky factors, triangular solves, eigenvectors, singular values and orthogonal columns in
/// float64, computed with Eigen, with the same bits on every x86-64 processor.
#pragma once
namespace mneme::portable {

/// Replaces LibTorch's operators with these functions, and fixes Eigen's cache sizes.
void register_decompositions();

} // namespace mneme::portable
