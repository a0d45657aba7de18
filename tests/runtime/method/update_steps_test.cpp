// Clipping, noise and compression of an update, with numbers worked out by hand.
#include "runtime/method/update_steps.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using Catch::Approx;

TEST_CASE("clip_update() scales a longer update to the bound and keeps a shorter one") {
  std::vector<double> update{3.0, 0.0, -4.0};
  CHECK(l2_norm(update) == 5.0);
  clip_update(update, 5.0);
  CHECK(update == std::vector<double>{3.0, 0.0, -4.0});
  clip_update(update, 2.5);
  CHECK(update == std::vector<double>{1.5, 0.0, -2.0});
}

TEST_CASE("add_gaussian() adds the normal numbers of the key's stream times the factor") {
  const rng_key key{.seed = 3, .purpose = 0x8002, .client = {4}};
  std::vector<double> update{1.0, 2.0, 3.0};
  add_gaussian(update, 0.5, key);
  rng_stream draw(key);
  for (const double before : {1.0, 2.0, 3.0})
    CHECK(update.at(static_cast<std::size_t>(before) - 1) == before + 0.5 * draw.normal());
}

TEST_CASE("kept_entries() rounds up, keeps at least one entry, and ignores rounding errors of the product") {
  CHECK(kept_entries(0.1, 30) == 3); // 0.1 * 30 is above 3 in float64
  CHECK(kept_entries(0.1, 31) == 4);
  CHECK(kept_entries(1e-9, 5) == 1);
  CHECK(kept_entries(1.0, 5) == 5);
  CHECK(kept_entries(0.5, 0) == 0);
}

TEST_CASE("keep_largest() keeps the largest magnitudes, and of equal ones those of lower index") {
  std::vector<double> update{1.0, -3.0, 2.0, -2.0, 0.5, 2.0};
  keep_largest(update, 3);
  CHECK(update == std::vector<double>{0.0, -3.0, 2.0, -2.0, 0.0, 0.0});
  keep_largest(update, 6);
  CHECK(update == std::vector<double>{0.0, -3.0, 2.0, -2.0, 0.0, 0.0});
}

TEST_CASE("quantise_update() with nearest rounds half to even on the grid max |x| / (2^(bits-1) - 1)") {
  std::vector<double> update{3.0, 0.5, 1.5, -0.4, -1.7, 0.0}; // 3 bits: levels 0 to 3, step 1
  quantise_update(update, 3, rounding_kind::nearest, {});
  CHECK(update == std::vector<double>{3.0, 0.0, 2.0, 0.0, -2.0, 0.0});
  std::vector<double> zeros{0.0, 0.0};
  quantise_update(zeros, 8, rounding_kind::nearest, {});
  CHECK(zeros == std::vector<double>{0.0, 0.0});
}

TEST_CASE("quantise_update() with stochastic rounding is floor(x / step + u) and has the right mean") {
  const rng_key key{.seed = 8, .purpose = 0x8004};
  std::vector<double> update(4001, 0.25);
  update.front() = 1.0; // 2 bits: levels 0 and 1, step 1
  quantise_update(update, 2, rounding_kind::stochastic, key);
  rng_stream draw(key);
  CHECK(draw.uniform() >= 0.0); // of the first entry, which is on the grid
  CHECK(update.front() == 1.0);
  double sum = 0.0;
  for (std::size_t i = 1; i < update.size(); ++i) {
    REQUIRE(update[i] == (draw.uniform() >= 0.75 ? 1.0 : 0.0));
    sum += update[i];
  }
  CHECK(sum / 4000.0 == Approx(0.25).margin(0.03)); // 4 standard deviations of a mean of 4000
}
