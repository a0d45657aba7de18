/// prompts: what a method puts into the attention of a frozen vision transformer, as data that its net is built from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace mneme {

enum class prompt_form : std::uint8_t {
  none,
  /// A prompt is the sum of components, each weighted by how well it fits the image (Smith et al. 2023, "CODA-Prompt").
  components,
  /// A prompt for each task, chosen by a key at test, and some that all tasks share (Wang et al. 2022, "DualPrompt").
  slots,
  /// No prompts: products of two low-rank matrices are added to queries and values (Hu et al. 2022, "LoRA"), and the
  /// head is a centre per class (low_rank_vit.hpp).
  low_rank,
};

struct prompt_shape {
  prompt_form form = prompt_form::none;
  std::vector<std::int64_t> blocks{};  ///< Blocks of the transformer with components, slots or products, from 0 on.
  std::vector<std::int64_t> general{}; ///< slots: blocks with a prompt that all tasks share.
  std::int64_t of_task = 10;           ///< components: that a task adds.
  std::int64_t rank = 4;               ///< low_rank: of each product.
  std::int64_t length = 8;         ///< Vectors of a prompt: the first half stands before keys, the other before values.
  std::int64_t general_length = 6; ///< The same of a shared prompt.
  bool softmax_focus = false;      ///< components: A is softmax(A) (Bagwe et al. 2023, "Fed-CPrompt").
  bool all_slots = false;          ///< slots: at test those of tasks to come are chosen from, too.

  /// Tells apart what computes differently: part of the net's identity.
  [[nodiscard]] std::string text() const;
};

} // namespace mneme
