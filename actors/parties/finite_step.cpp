#include "actors/parties/finite_step.hpp"
#include "runtime/method/finite_values.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/storage/parameters.hpp"
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

/// Lists the learning rates and weights that are not 0: "training.learning_rate = 0.05, strategy.mu = 0.1".
std::string likely_keys(const scenario& settings) {
  auto text = fmt::format("training.learning_rate = {}", settings.training.learning_rate);
  if (settings.rounds.mode == round_mode::async)
    text += fmt::format(", rounds.server_learning_rate = {}", settings.rounds.server_learning_rate);
  key_table keys;
  settings.strategy.method->keys(keys);
  for (const auto& key : keys.all())
    if (double* const* number = std::get_if<double*>(&key.target); number && **number != 0.0)
      text += fmt::format(", strategy.{} = {}", key.name, **number);
  return text;
}

[[noreturn]] void fail(const run_context& run, const char* subject, const std::string& tensor) {
  throw std::runtime_error(
      fmt::format("{} of '{}' is not finite: {} holds values that are NaN or infinite; other values of these keys may "
                  "help: {}",
                  subject, run.scenario.strategy.name, tensor, likely_keys(run.scenario)));
}

} // namespace

void expect_finite(const run_context& run, const char* subject, const tensors_ref& tensors) {
  if (!tensors)
    return;
  if (const auto name = non_finite_tensor(*tensors, *run.net); !name.empty())
    fail(run, subject, name);
}

void expect_finite(const run_context& run, const char* subject, const predictor& learned) {
  expect_finite(run, subject, learned.weights);
  if (learned.readout.defined() && !is_finite(learned.readout))
    fail(run, subject, readout_name);
}

} // namespace mneme
