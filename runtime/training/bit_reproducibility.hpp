/// bit_reproducibility: checks that this machine always computes the same bits for a client. A client's results must
/// not depend on memory alignment, on the thread, or on the other clients of its batch. Run digests rely on this.
#pragma once
#include "runtime/models/model.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Result of one check.
struct reproducibility_check {
  std::string name{};    ///< Name of the check, such as "operands that begin anywhere".
  std::string details{}; ///< Number of comparisons, or the first difference.
  bool holds = true;
};

/// Nets that train in a millisecond and together use every kind of matrix product: mlp, cnn and vit.
[[nodiscard]] std::vector<model_ref> small_nets();

/// Compares gradients of the nets with operands at the 16 float offsets of a cache line. Also compares the trained
/// weights of three clients alone, in a group, and in groups on three concurrent threads. Takes a few milliseconds on
/// the CPU. @pre `nets` is not empty
[[nodiscard]] std::vector<reproducibility_check> check_reproducibility(const std::vector<model_ref>& nets);

/// Returns a warning about the first failed check; empty if all succeed.
[[nodiscard]] std::string warning_of(const std::vector<reproducibility_check>& findings);

} // namespace mneme
