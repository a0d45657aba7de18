/// plot: accuracy over the rounds of a run as a picture that every browser shows.
#pragma once
#include "runtime/results/metrics.hpp"
#include <span>
#include <string>
namespace mneme {

/// A self-contained SVG: one curve per task and one over all tasks seen, task boundaries, axes and a
/// legend. Equal evaluations give equal text. @pre `evaluations` are in the order of their rounds
[[nodiscard]] std::string accuracy_plot_svg(const std::string& title, std::span<const evaluation_record> evaluations);

} // namespace mneme
