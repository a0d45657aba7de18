/// small_prompted_vit: a small vision transformer with prompts, and the weights of
/// tools/research/export/official/coda_prompt.py.
#pragma once
#include "runtime/models/prompted_vit.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/nets.hpp"
namespace mneme::test {

inline constexpr std::int64_t prompted_tasks = 4; // of two classes each

inline prompt_shape small_components() {
  return {.form = prompt_form::components, .blocks = {0, 1, 2, 3, 4}, .of_task = 2, .length = 4};
}
inline prompt_shape small_slots() {
  return {.form = prompt_form::slots,
          .blocks = {2, 3, 4},
          .general = {0, 1},
          .length = 4,
          .general_length = 2,
          .all_slots = true};
}

/// A ViT of width 16 on images of 8 x 8 pixels in patches of 4.
inline model_ref small_vit(const prompt_shape& prompts) {
  const auto kind = kind_with("vit", {{"patch", "4"}, {"width", "16"}, {"depth", "5"}, {"heads", "2"}});
  kind->set_prompts(prompts);
  std::vector<class_range> tasks;
  for (std::int64_t k = 0; k < prompted_tasks; ++k)
    tasks.push_back({2 * k, 2 * k + 2});
  kind->set_tasks(tasks);
  return kind->build({3, 8, 8}, 2 * prompted_tasks).value();
}
inline std::shared_ptr<const prompted_vit> small_prompted_vit(const prompt_shape& prompts) {
  return std::dynamic_pointer_cast<const prompted_vit>(small_vit(prompts));
}

/// A ViT of width 24 on rows of `features` pixels, each of which is a patch.
inline model_ref row_prompted_vit(const prompt_shape& prompts, const std::vector<class_range>& tasks,
                                  std::int64_t features) {
  const auto kind = kind_with("vit", {{"patch", "1"}, {"width", "24"}, {"depth", "5"}, {"heads", "2"}});
  kind->set_prompts(prompts);
  kind->set_tasks(tasks);
  return kind->build({1, 1, features}, tasks.back().high).value();
}

/// The script's values, [P] float64. @param filled rows of components and slots with values; the others are zeros
inline at::Tensor official_prompts(const model& net, std::int64_t filled) {
  auto flat = at::zeros({net.size()}, at::kDouble);
  for (const auto& entry : net.layout()) {
    auto values = at::tensor(formula("prompted." + entry.name, entry.size)).to(at::kDouble).view(entry.shape) * 0.5;
    const bool is_scale = entry.name.find("norm") != std::string::npos && entry.name.ends_with(".weight");
    if (is_scale)
      values.add_(1.0);
    const bool is_general = entry.name.ends_with(".general");
    if (entry.name.starts_with("prompts.")) {
      values.mul_(2.0);
      if (!is_general && filled < entry.shape[0])
        values.narrow(0, filled, entry.shape[0] - filled).zero_();
    }
    put_as_in_files(flat, entry, values);
  }
  return flat;
}

} // namespace mneme::test
