/// feature_gan: an auxiliary-classifier GAN of features: a generator for each class, and a critic that tells real from
/// made and class from class (Odena, Olah and Shlens 2017, AC-GAN; Qi et al. 2023, FedCIL).
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/method/program.hpp"
#include "runtime/models/model.hpp"
#include "strategies/shared/adam.hpp"
namespace mneme {

// Axes: K calls of a batch; n rows of a call, B rows of a step; D features, C classes of the run, Z latent numbers;
// G weights of a generator, P of a critic; M generators of clients.

struct gan_shape {
  std::int64_t features = 0, classes = 0;
  std::int64_t latent = 110, generator_width = 512, critic_width = 256;
};

/// Both nets. The critic's head has a row for each class of the run and, behind them, one that says "real".
class feature_gan {
public:
  explicit feature_gan(const gan_shape& shape);
  [[nodiscard]] const gan_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const model_ref& generator() const noexcept { return generator_; }
  [[nodiscard]] const model_ref& critic() const noexcept { return critic_; }
  /// Normal numbers and one-hot labels, [B, Z + C]. @param labels [B]
  [[nodiscard]] at::Tensor codes(const std::vector<std::int64_t>& labels, const rng_key& key) const;

private:
  gan_shape shape_;
  model_ref generator_, critic_;
};

/// How both are trained.
struct gan_training {
  std::int64_t steps = 400, batch = 32;
  adam_rates rates{.rate = 1e-4, .beta1 = 0.5, .beta2 = 0.99};
  class_range opened{};         ///< Classes that cross-entropy compares.
  std::int64_t old_classes = 0; ///< Those of earlier tasks: the first ones.
  double consistency = 0.0;     ///< Weight of each of FedCIL's three consistency terms.
};

/// A program that trains generator and critic against each other on rows of features. A step's loss of the critic is
///     BCE(real, 1) + CE(real, y) + BCE(made, 0) + CE(made, y'),
/// and the generator's BCE(made, 1) + CE(made, y'). With an old generator both are halved, and the same of rows that it
/// makes of old classes is added. With the server's generator and a weight, KL(p(real) || p(its rows of the same
/// labels)), KL(p(own) || p(its rows)) and the cross-entropy of its rows join the critic's loss.
///
/// Reads "generator" [G], "critic" [P] and either "features" [n, D] with "labels" [n] int64 or, for the server,
/// "generators" [M, G] and "fresh" [c] int64, the labels that these make in turn; may read "old_generator" [G] and
/// "server_generator" [G]. Ends with "generator" and "critic".
[[nodiscard]] program_ref gan_program(std::shared_ptr<const feature_gan> gan, const gan_training& with);

} // namespace mneme
