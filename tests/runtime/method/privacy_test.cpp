// Epsilon of the sampled Gaussian mechanism. Reference: dp-accounting 0.6.0, RdpAccountant() with its default orders,
// compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier)), rounds).get_epsilon(delta).
#include "runtime/method/privacy.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using Catch::Approx;

namespace {

double composed_epsilon(double rate, double noise_multiplier, double rounds, double delta) {
  std::vector<double> rdp;
  for (const auto order : privacy_orders())
    rdp.push_back(rounds * sampled_gaussian_rdp(rate, noise_multiplier, order));
  return epsilon_of(rdp, delta);
}

scenario private_scenario() {
  scenario settings;
  settings.clients.count = 20;
  settings.rounds.cohort = 2;
  settings.uploads.clip_norm = 3.0;
  settings.uploads.noise_multiplier = 1.0;
  return settings;
}

} // namespace

TEST_CASE("epsilon_of() equals dp-accounting to 1e-6") {
  CHECK(composed_epsilon(0.1, 1.0, 10, 1e-5) == Approx(3.441642764041644).epsilon(1e-6));
  CHECK(composed_epsilon(0.01, 0.8, 1000, 1e-6) == Approx(4.2934567460187125).epsilon(1e-6));
  CHECK(composed_epsilon(0.5, 4.0, 30, 1e-5) == Approx(3.261074021582596).epsilon(1e-6));
  CHECK(composed_epsilon(1.0, 2.0, 5, 1e-5) == Approx(5.377728336819822).epsilon(1e-6));
  CHECK(composed_epsilon(1.0, 0.5, 7, 1e-3) == Approx(32.02287827345619).epsilon(1e-6));
  CHECK(composed_epsilon(0.2, 0.3, 3, 1e-5) == Approx(31.455146831809678).epsilon(1e-6));
  CHECK(composed_epsilon(1e-4, 1.1, 10000, 1e-7) == Approx(0.5791371180285402).epsilon(1e-6));
  CHECK(composed_epsilon(0.1, 50.0, 1, 0.1) == 0.0);
}

TEST_CASE("sampled_gaussian_rdp() is alpha / (2 z^2) without sampling and 0 without clients") {
  CHECK(sampled_gaussian_rdp(1.0, 2.0, 3.0) == 3.0 / 8.0);
  CHECK(sampled_gaussian_rdp(0.0, 2.0, 3.0) == 0.0);
}

TEST_CASE("the accountant uses cohort / clients as rate, and 1 if clients come and go") {
  auto settings = private_scenario();
  CHECK(privacy_accountant(settings).epsilon(10).value() == Approx(3.441642764041644).epsilon(1e-6));
  settings.devices.availability = device_availability::diurnal;
  CHECK(privacy_accountant(settings).epsilon(10).value() == Approx(composed_epsilon(1.0, 1.0, 10, 1e-5)));
}

TEST_CASE("noise of clients has twice the sensitivity and no sampling") {
  auto settings = private_scenario();
  settings.uploads.noise = noise_place::client;
  CHECK(privacy_accountant(settings).epsilon(3).value() == Approx(composed_epsilon(1.0, 0.5, 3, 1e-5)));
}

TEST_CASE("there is no epsilon without noise, and none for tree noise") {
  auto settings = private_scenario();
  settings.uploads.noise = noise_place::tree;
  CHECK_FALSE(privacy_accountant(settings).epsilon(3));
  settings.uploads.noise_multiplier = 0.0;
  CHECK_FALSE(privacy_accountant(settings).epsilon(3));
}
