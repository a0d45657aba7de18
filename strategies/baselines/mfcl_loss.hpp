/// mfcl_loss: the loss of MFCL's clients from task 2 on (Babakniya et al., NeurIPS 2023, and its official code).
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

/// Weights of the loss terms.
struct mfcl_weights {
  double head = 1.0, features = 0.1; ///< w_ft, w_kd
};
/// CE over the classes from `old_classes` on, a mean over real rows,
///     + w_ft CE(h(stop(f)), y) over all classes + w_kd / O sum_c (h'(f)_c - u_c)^2, means over real and replayed rows,
///     with features f and head h. The label of a replayed row is the argmax of the teacher's O logits u. h' is the
///     teacher's head: "old_weight" [O, D] and "old_bias" [O] in the job's auxiliary tensors. The second term has no
///     gradient for the features.
[[nodiscard]] loss_ref mfcl_objective(std::int64_t old_classes, const mfcl_weights& weights);
inline constexpr const char* old_head_weight = "old_weight";
inline constexpr const char* old_head_bias = "old_bias";
/// Makes the auxiliary tensors of mfcl_objective() from the first `old` rows of the linear head in `flat` [P].
[[nodiscard]] tensors_ref old_head(const model& net, const at::Tensor& flat, std::int64_t old);

} // namespace mneme
