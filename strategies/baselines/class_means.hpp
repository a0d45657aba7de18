/// class_means: the read-out by the nearest mean of exemplars (Rebuffi et al. 2017, Algorithm 1), over a federation.
///
/// A client sends sums of unit features by class and their counts; the server adds them up. A row is answered with the
/// class whose mean direction is nearest: argmax_c cos(x, e_c) is argmin_c |x / |x| - e_c|^2, since e_c has length 1.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/jobs.hpp"
namespace mneme {

// Axes: C classes of the run, D features.

/// What a client uploads for it: [C, D] and [C], float32.
inline constexpr const char *class_sums_name = "class_sums", *class_counts_name = "class_counts";

/// Sums unit features x / (|x| + 1e-8) of the job's rows by class, under the weights in `flat_weights`, without
/// augmentation; those of the mirrored images, too, if `mirrored`. @pre rows are images if `mirrored`
[[nodiscard]] program_ref unit_feature_sums(model_ref net, std::int64_t classes, bool mirrored);

/// The server's half.
class class_mean_sums {
public:
  /// An upload's part, if it has one.
  void add(const tensor_map& upload);
  /// Classes that were sent get new means; of the others the last ones stay.
  void take();
  /// e_c [C, D] float32, zeros of a class that nobody has ever sent; undefined before the first take() of something.
  [[nodiscard]] const at::Tensor& means() const { return means_; }
  void persist(archive& state) { state(sums_)(counts_)(means_); }

private:
  at::Tensor sums_, counts_; // [C, D], [C] float64; undefined: nothing was added
  at::Tensor means_;
};

} // namespace mneme
