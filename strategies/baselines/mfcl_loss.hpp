/// mfcl_loss: what MFCL's clients minimise in later tasks (Babakniya et al. 2023, from its public code).
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

struct mfcl_weights {
  double head = 1.0, features = 0.1; ///< w_ft, w_kd
};
/// CE over the classes behind the `old_classes` first, of own rows, a mean over them,
///     + w_ft CE(h(stop(f)), y) over all classes + w_kd / O sum_c (h'(f)_c - u_c)^2,
/// means over all rows, own and replayed, of features f and the head h. A replayed row's class is the one of the O old
/// ones that the teacher takes it for; u are the teacher's logits, and h' is its head: "old_weight" [O, D] and
/// "old_bias" [O] in the job's side. Gradients of the second term end at the features.
[[nodiscard]] loss_ref mfcl_objective(std::int64_t old_classes, const mfcl_weights& with);
inline constexpr const char* old_head_weight = "old_weight";
inline constexpr const char* old_head_bias = "old_bias";
/// That side: the first `old` rows of the linear head in `flat` [P].
[[nodiscard]] tensors_ref old_head(const model& net, const at::Tensor& flat, std::int64_t old);

} // namespace mneme
