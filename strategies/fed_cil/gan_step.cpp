#include "strategies/fed_cil/gan_step.hpp"
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ATen.h>
namespace mneme {

namespace {

at::Tensor mean_of_rows(const at::Tensor& values) { return values.mean(-1).sum(); } // [K, B]: mean over B, sum over K

/// Computes the critic's scores of rows, and the losses of these scores.
class judgment {
public:
  judgment(const feature_gan& gan, const gan_training& training) : gan_(gan), options_(training) {}

  /// Returns the critic's scores [K, B, C + 1].
  [[nodiscard]] at::Tensor scores(const at::Tensor& critic, const at::Tensor& features) const {
    const auto classes = gan_.critic()->classes();
    return gan_.critic()->differentiable(critic, features.unflatten(2, {1, 1, -1}), {0, classes}, {}).logits;
  }
  [[nodiscard]] at::Tensor log_p(const at::Tensor& scores) const {
    return stacked_log_softmax(scores.narrow(2, options_.seen_classes.low, options_.seen_classes.size()));
  }
  [[nodiscard]] at::Tensor cross_entropy(const at::Tensor& log_p, const at::Tensor& labels) const {
    return mean_of_rows(-log_p.gather(2, (labels - options_.seen_classes.low).unsqueeze(2)).squeeze(2));
  }
  /// Binary cross-entropy of "real" plus cross-entropy over the classes.
  [[nodiscard]] at::Tensor likelihood(const at::Tensor& scores, const at::Tensor& labels, bool real) const {
    const auto says_real = scores.select(2, scores.size(2) - 1); // [K, B]
    const auto sure = by_element((real ? says_real : -says_real).contiguous(), at::log_sigmoid);
    return mean_of_rows(-sure) + cross_entropy(log_p(scores), labels);
  }
  /// Losses of real rows (target real) and of their fakes (target fake).
  [[nodiscard]] at::Tensor separation_loss(const at::Tensor& critic, const labeled_rows& real,
                                           const labeled_rows& fakes) const {
    return likelihood(scores(critic, real.features), real.labels, true) +
           likelihood(scores(critic, fakes.features), fakes.labels, false);
  }

private:
  const feature_gan& gan_;
  const gan_training& options_;
};

/// KL(p || q) from log-probabilities, averaged over rows.
at::Tensor kullback_leibler(const at::Tensor& log_p, const at::Tensor& log_q) {
  return mean_of_rows((by_element(log_p.contiguous(), at::exp) * (log_p - log_q)).sum(2));
}

double value_of(const at::Tensor& loss) { return loss.detach().item<double>(); }

} // namespace

gan_losses gan_step(const feature_gan& gan, const gan_training& training, gan_optimizers& both,
                    const gan_draws& drawn) {
  const judgment judge(gan, training);
  const bool replays = drawn.old.features.defined();
  const double share = replays ? 0.5 : 1.0;
  gan_losses losses;

  // Critic step, with a fixed generator.
  const auto fixed = both.generator.weights();
  const auto generated = [&](const labeled_codes& coded) {
    return labeled_rows{.features = gan.rows(fixed, coded.codes), .labels = coded.labels};
  };
  const auto critic = leaf_of(both.critic.weights());
  auto loss = judge.separation_loss(critic, drawn.real, generated(drawn.fakes)) * share;
  if (replays)
    loss = loss + judge.separation_loss(critic, drawn.old, generated(drawn.old_fakes)) * share;
  if (drawn.server.features.defined()) {
    const auto says = [&](const at::Tensor& features) { return judge.log_p(judge.scores(critic, features)); };
    const auto with_real = kullback_leibler(says(drawn.server.features), says(drawn.real.features));
    const auto log_any = says(drawn.server_any.features);
    const auto with_own = kullback_leibler(log_any, says(generated(drawn.own_any).features));
    const auto of_classes = judge.cross_entropy(log_any, drawn.server_any.labels);
    losses.with_real = value_of(with_real);
    losses.with_own = value_of(with_own);
    losses.of_classes = value_of(of_classes);
    loss = loss + (with_real + with_own + of_classes) * training.consistency;
  }
  losses.critic = value_of(loss);
  both.critic.step(gradients_of(loss, {critic}).front(), training.rates);

  // Generator step, against the updated critic.
  const auto generator = leaf_of(both.generator.weights());
  const auto against = [&](const labeled_codes& coded) {
    return judge.likelihood(judge.scores(both.critic.weights(), gan.rows(generator, coded.codes)), coded.labels, true);
  };
  auto fooled = against(drawn.generator_inputs);
  if (drawn.old_generator_inputs.codes.defined())
    fooled = (fooled + against(drawn.old_generator_inputs)) * share;
  losses.generator = value_of(fooled);
  both.generator.step(gradients_of(fooled, {generator}).front(), training.rates);
  return losses;
}

} // namespace mneme
