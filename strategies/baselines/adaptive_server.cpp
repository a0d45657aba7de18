#include "strategies/baselines/adaptive_server.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <cmath>
namespace mneme {

adaptive_server::adaptive_server(const method_setup& setup, const adaptive_options& options)
    : averaging_server(setup), options_(options), parameters_(at::ones({setup.net->size()})),
      first_(at::zeros_like(weights())),
      second_(at::full_like(weights(), options.start == moment_start::zero ? 0.0 : options.tau * options.tau)) {
  for (const auto& entry : setup.net->layout())
    if (entry.buffer)
      parameters_.narrow(0, entry.offset, entry.size).zero_();
}

double adaptive_server::rate() const {
  if (!options_.corrected)
    return options_.rate;
  const auto t = static_cast<double>(steps_ + 1);
  return options_.rate * std::sqrt(1.0 - std::pow(options_.beta_2, t)) / (1.0 - std::pow(options_.beta_1, t));
}

task<void> adaptive_server::close_round(server_context&, const round_info&) {
  const auto before = weights();
  average();
  const auto mean = weights();
  if (mean.is_same(before))
    co_return; // no client has uploaded

  ++steps_;
  const auto moved = mean - before.to(mean.device()), squared = moved.square();
  const auto first = first_.to(mean.device()), second = second_.to(mean.device());
  first_ = options_.beta_1 * first + (1.0 - options_.beta_1) * moved;
  second_ = options_.rule == second_moment::adam
                ? options_.beta_2 * second + (1.0 - options_.beta_2) * squared
                : second - (1.0 - options_.beta_2) * squared * (second - squared).sign();
  const auto stepped = before.to(mean.device()) + rate() * first_ / (second_.sqrt() + options_.tau);
  const auto steps = parameters_.to(mean.device());
  set_weights(at::where(steps > 0, stepped, mean));
}

void adaptive_server::persist(archive& state) {
  averaging_server::persist(state);
  state.frozen(first_).frozen(second_)(steps_);
}

void adaptive_method::keys(key_table& table) {
  table.number("server_learning_rate", options_.rate, {.low = 0.0, .open_low = true},
               "eta: learning rate of the server's step.");
  table.number("beta_1", options_.beta_1, {.low = 0.0, .high = 0.999999},
               "beta_1: decay of the running mean of the clients' mean change.");
  table.number("beta_2", options_.beta_2, {.low = 0.0, .high = 0.999999},
               "beta_2: decay of the running mean of the squared mean change.");
  table.number("tau", options_.tau, {.low = 0.0, .open_low = true},
               "tau: added to the root of the second moment; a larger value makes the step less adaptive.");
  table.choice("second_moment", options_.start,
               {{"tau-squared", moment_start::tau_squared}, {"zero", moment_start::zero}},
               "Initial value of the second moment.");
  table.flag("bias_correction", options_.corrected,
             "Correct the first steps for moments that start at zero, as in Adam.");
}

std::vector<preset> adaptive_method::presets() const {
  const std::string paper = "[strategy]\nbeta_1 = 0.9\nbeta_2 = 0.99\ntau = 1e-3\nsecond_moment = \"tau-squared\"\n"
                            "bias_correction = false\n";
  std::string flower = "[strategy]\nbeta_1 = 0.9\nbeta_2 = 0.99\nserver_learning_rate = 0.1\ntau = 1e-9\n"
                       "second_moment = \"zero\"\nbias_correction = ";
  flower += options_.rule == second_moment::adam ? "true\n" : "false\n";
  return {{"paper", "Algorithm 2 with the constants of the paper's experiments", paper},
          {"flower", "the defaults of Flower", flower}};
}

std::unique_ptr<server_half> adaptive_method::make_server() const {
  return std::make_unique<adaptive_server>(setup(), options_);
}

} // namespace mneme
