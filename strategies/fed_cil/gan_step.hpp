/// gan_step: one step of an auxiliary-classifier GAN of features, with everything that is drawn as an argument (Odena,
/// Olah and Shlens 2017, AC-GAN; Qi et al. 2023, FedCIL).
#pragma once
#include "runtime/base/class_range.hpp"
#include "strategies/fed_cil/gan_nets.hpp"
#include "strategies/shared/adam.hpp"
namespace mneme {

// Axes: K calls of a batch; B rows of a step; D features, C classes of the run, Z numbers of a code.

/// How both are trained.
struct gan_training {
  std::int64_t steps = 400, batch = 32;
  adam_rates rates{.rate = 1e-4, .beta1 = 0.5, .beta2 = 0.99};
  class_range opened{};       ///< Classes that cross-entropy compares.
  bool any_fakes = false;     ///< Labels of fakes are drawn from the classes so far; else they are the real rows'.
  bool keeps_moments = false; ///< Moments are read with the nets, and left beside them.
  bool shuffles = false;    ///< Own rows come pass by pass, each a shuffle, the last short batch left out; else drawn.
  double consistency = 0.0; ///< Weight of each of FedCIL's three consistency terms.
};

/// Rows that play the same part in every call: [K, B, D] and [K, B]; undefined: none.
struct labelled_rows {
  at::Tensor features{}, labels{};
};
/// Codes that the generator in training makes such rows of, [K, B, Z].
struct labelled_codes {
  at::Tensor codes{}, labels{};
};
/// What a step is given.
struct gan_draws {
  labelled_rows real{}, old{};             ///< Own rows; replayed ones, if any.
  labelled_codes fakes{}, old_fakes{};     ///< What the critic is shown beside each.
  labelled_codes fooling{}, old_fooling{}; ///< What the generator's own step makes; the second only where it has two.
  labelled_rows server{}, server_any{};    ///< The server's rows with the real labels, and with labels of all classes.
  labelled_codes own_any{};                ///< With the labels of the latter.
};
struct gan_players {
  adam generator{}, critic{};
};
/// Losses of a step, means over rows, summed over calls.
struct gan_losses {
  double critic = 0.0, generator = 0.0;
  double with_real = 0.0, with_own = 0.0, of_classes = 0.0; ///< The consistency terms, before they are weighed.
};

/// The critic descends BCE(real, 1) + CE(real, y) + BCE(fakes, 0) + CE(fakes, y'), then the generator BCE(fooling, 1) +
/// CE(fooling, y''), against the critic as it has become. With replayed rows the critic's loss is halved, and the same
/// of these is added; the generator's too, where it is given two batches. With rows of the server, the critic's loss
/// has
///     KL(p(server's) || p(real)) + KL(p(server's) || p(own)) + CE(server's)
/// besides: rows of the real labels in the first term, of labels of all classes in the others.
gan_losses gan_step(const feature_gan& gan, const gan_training& with, gan_players& both, const gan_draws& drawn);

} // namespace mneme
