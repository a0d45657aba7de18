/// gan_step: one training step of an auxiliary-classifier GAN on features (Odena, Olah and Shlens 2017, AC-GAN; Qi et
/// al. 2023, FedCIL). All random draws are arguments.
#pragma once
#include "runtime/base/class_range.hpp"
#include "strategies/fed_cil/gan_nets.hpp"
#include "strategies/shared/adam.hpp"
namespace mneme {

// Axes: K calls of a batch, B rows of a step, D features, C classes of the run, Z numbers of a code.

/// Options of the training of both nets.
struct gan_training {
  std::int64_t steps = 400, batch = 32;
  adam_rates rates{.rate = 1e-4, .beta1 = 0.5, .beta2 = 0.99};
  class_range seen_classes{}; ///< Classes that the cross-entropy covers.
  bool any_fakes = false;     ///< True: labels of fakes are drawn from the classes so far. False: they are those of the
                              ///< real rows.
  bool keeps_moments = false; ///< Reads and returns Adam's moments together with the nets.
  bool shuffles = false;      ///< True: each pass shuffles the rows and drops a short last batch. False: rows are drawn
                              ///< at random.
  double consistency = 0.0;   ///< Weight of each of FedCIL's three consistency terms.
};

/// Rows of one kind (real, replayed, ...) for all calls: [K, B, D] and [K, B]. Undefined if there are none.
struct labeled_rows {
  at::Tensor features{}, labels{};
};
/// Codes [K, B, Z] and labels [K, B], from which the trained generator makes rows.
struct labeled_codes {
  at::Tensor codes{}, labels{};
};
/// Random draws of one step.
struct gan_draws {
  labeled_rows real{}, old{};                               ///< Real rows, and replayed rows if there are any.
  labeled_codes fakes{}, old_fakes{};                       ///< Fakes for the critic's step: for the real rows, and for
                                                            ///< the replayed rows.
  labeled_codes generator_inputs{}, old_generator_inputs{}; ///< Codes of the generator's step; the second is optional.
  labeled_rows server{}, server_any{}; ///< Rows of the server's generator: with the labels of the real rows, and with
                                       ///< labels of all classes.
  labeled_codes own_any{};             ///< Codes with the labels of server_any.
};
/// Both nets with their optimizers.
struct gan_optimizers {
  adam generator{}, critic{};
};
/// Losses of a step: means over rows, summed over calls.
struct gan_losses {
  double critic = 0.0, generator = 0.0;
  double with_real = 0.0, with_own = 0.0, of_classes = 0.0; ///< Consistency terms, unweighted.
};

/// The critic descends BCE(real, 1) + CE(real, y) + BCE(fakes, 0) + CE(fakes, y'). Then the generator descends
/// BCE(fooling, 1) + CE(fooling, y'') against the updated critic, where `fooling` are rows from `generator_inputs`.
/// With replayed rows, the critic's loss is the mean of this loss on real and on replayed rows; the same holds for the
/// generator's loss if `old_generator_inputs` is given. With rows of the server's generator, the critic's loss also has
/// `consistency` times
///     KL(p(server) || p(real)) + KL(p(server) || p(own)) + CE(server).
/// The first term uses rows with the labels of the real rows, the others rows with labels of all classes.
gan_losses gan_step(const feature_gan& gan, const gan_training& training, gan_optimizers& both, const gan_draws& drawn);

} // namespace mneme
