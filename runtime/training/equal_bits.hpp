/// equal_bits: shows whether this machine gives a client the same bits wherever its operands lie, whoever shares its
/// batch and whichever thread computes it. Digests rest on that.
#pragma once
#include "runtime/models/model.hpp"
#include <string>
#include <vector>
namespace mneme {

/// One question to the machine, and its answer.
struct bits_finding {
  std::string name{};    ///< "operands that begin anywhere", ...
  std::string details{}; ///< How much was compared, or what differed first.
  bool holds = true;
};

/// Nets with products of every kind, which train in a millisecond: mlp, cnn and vit.
[[nodiscard]] std::vector<model_ref> small_nets();

/// Compares gradients of the nets with operands at the 16 places of a cache line, and trained weights of three clients
/// alone, in a group, and in groups on three threads at once. On a CPU; takes some milliseconds. @pre not empty
[[nodiscard]] std::vector<bits_finding> check_equal_bits(const std::vector<model_ref>& nets);

/// What a run has to say of them: empty if all hold.
[[nodiscard]] std::string warning_of(const std::vector<bits_finding>& findings);

} // namespace mneme
