/// functions: exponentials, logarithms and their like of one tensor, by SLEEF's AVX2 functions, which LibTorch holds.
/// Each element is computed alone: bits depend neither on its place nor on its neighbours.
#pragma once
namespace mneme::portable {

/// Registers ours for the operators of LibTorch that compute one.
void register_functions();

} // namespace mneme::portable
