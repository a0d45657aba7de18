/// decompositions: Cholesky factors, triangular solves, eigenvectors and orthogonal columns in float64, by textbook
/// algorithms with a fixed order of operations.
#pragma once
namespace mneme::portable {

/// Replaces the LibTorch operators by these.
void register_decompositions();

} // namespace mneme::portable
