/// prompts: settings of the prompts or low-rank adapters that a method adds to a frozen vision transformer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace mneme {

/// Kind of change to the transformer's attention.
enum class prompt_form : std::uint8_t {
  none,
  /// A prompt is a sum of components, weighted by their similarity to the image (Smith et al. 2023, "CODA-Prompt").
  components,
  /// One prompt per task, selected by a key in evaluation, and prompts that all tasks share (Wang et al. 2022,
  /// "DualPrompt").
  slots,
  /// No prompts: products of two low-rank matrices are added to queries and values (Hu et al. 2022, "LoRA"), and the
  /// head has a center per class (low_rank_vit.hpp).
  low_rank,
};

/// Sizes and options. `form` determines which of them are read.
struct prompt_shape {
  prompt_form form = prompt_form::none;
  std::vector<std::int64_t> blocks{};  ///< Blocks of the transformer with components, slots or products, from 0.
  std::vector<std::int64_t> general{}; ///< slots: blocks with a prompt that all tasks share.
  std::int64_t of_task = 10;           ///< components: number of components that each task adds.
  std::int64_t rank = 4;               ///< low_rank: rank of each product.
  std::int64_t length = 8;             ///< Number of vectors of a prompt. The first half precedes the keys, the second
                                       ///< half the values.
  std::int64_t general_length = 6;     ///< Number of vectors of a shared prompt.
  bool softmax_focus = false; ///< components: true replaces A with softmax(A) (Bagwe et al. 2023, "Fed-CPrompt").
  bool all_slots = false;     ///< slots: true lets evaluation also select slots of future tasks.

  /// Text for the net's identity. Settings that compute different results have different texts.
  [[nodiscard]] std::string text() const;
};

} // namespace mneme
