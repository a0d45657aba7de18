/// functions: elementwise exponentials, logarithms and similar functions, computed with the SLEEF AVX2 functions in
/// LibTorch. The bits of an element do not depend on its position or its neighbors.
#pragma once
namespace mneme::portable {

/// Replaces LibTorch's operators with these functions.
void register_functions();

} // namespace mneme::portable
