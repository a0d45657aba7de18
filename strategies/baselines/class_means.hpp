/// class_means: nearest-mean-of-exemplars classification (Rebuffi et al. 2017, Algorithm 1) for a federation.
///
/// A client uploads, per class, the sum and the number of its unit feature vectors. The server adds the uploads. The
/// prediction is the class with the nearest mean direction e_c. Since |e_c| = 1, argmax_c cos(x, e_c) equals argmin_c
/// |x / |x| - e_c|^2.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/method/jobs.hpp"
namespace mneme {

// Axes: C classes of the run, D features.

/// Names of the uploaded tensors: sums [C, D] and counts [C], float32.
inline constexpr const char *class_sums_name = "class_sums", *class_counts_name = "class_counts";

/// A program that sums the unit features x / (|x| + 1e-8) of the job's rows by class, without augmentation. It reads
/// the weights from `flat_weights`.
/// @param mirrored also adds the features of the mirrored images; the counts do not change
/// @pre the rows are images if `mirrored`
[[nodiscard]] program_ref unit_feature_sums(model_ref net, std::int64_t classes, bool mirrored);

/// Server half: adds the uploads of a round and keeps the class means.
class class_mean_sums {
public:
  /// Adds the sums and counts of an upload. An upload without them is ignored.
  void add(const tensor_map& upload);
  /// Computes the means of all classes that were uploaded since the last call. Other classes keep their means.
  void update();
  /// e_c [C, D] float32; a row of zeros for a class without uploads. Undefined until update() has been called after
  /// add().
  [[nodiscard]] const at::Tensor& means() const { return means_; }
  void persist(archive& state) { state(sums_)(counts_)(means_); }

private:
  at::Tensor sums_, counts_; // [C, D] and [C] float64; undefined if no upload was added
  at::Tensor means_;
};

} // namespace mneme
