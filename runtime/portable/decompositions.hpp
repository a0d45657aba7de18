/// decompositions: Cholesky factors and what they solve, eigenvectors and orthogonal columns, computed in float64 one
/// step after the other as textbooks have them.
#pragma once
namespace mneme::portable {

/// Registers ours for the operators of LibTorch.
void register_decompositions();

} // namespace mneme::portable
