/// large_pages: huge pages for memory that is read at random positions.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// Moves a CPU tensor to pages of 2 MiB, if the system supports it. With small pages, gathering small images spends a
/// third of its time on address translation.
void advise_huge_pages(const at::Tensor& memory);

} // namespace mneme
