#include "runtime/base/rng.hpp"
#include <algorithm>
#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <set>
using namespace mneme;

namespace {

constexpr int draws = 200'000;

struct moments {
  double mean = 0.0, variance = 0.0;
};
/// Mean and variance of `draws` draws.
template <class Draw>
moments measured(Draw draw) {
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < draws; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

/// Pearson's statistic of `counts` against a uniform distribution; its mean is counts.size() - 1.
double chi_square(const std::vector<int>& counts) {
  const double each = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0.0;
  for (int count : counts)
    sum += (count - each) * (count - each) / each;
  return sum;
}

rng_stream stream(std::uint64_t index) { return rng_stream{{.seed = 2024, .purpose = 7, .index = index}}; }

} // namespace

TEST_CASE("Philox4x32-10 gives the published known answers", "[rng]") {
  using words = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream does not depend on when it is made, and its first words are pinned", "[rng]") {
  const rng_key key{.seed = 1, .purpose = 2, .client = {3}, .task = {4}, .visit = 5, .index = 6};
  rng_stream a(key), b(key);
  for (int i = 0; i < 100; ++i)
    REQUIRE(a.bits32() == b.bits32());
  rng_stream again(key);
  const std::uint64_t low = again.bits32(), high = again.bits32();
  CHECK(rng_stream(key).bits64() == (low | high << 32));
  CHECK(low == 0xac397745); // pinned: every run changes with this value
}

TEST_CASE("keys that differ in any field give different streams", "[rng]") {
  std::set<std::array<std::uint64_t, 2>> seen;
  const auto add = [&](const rng_key& key) {
    rng_stream stream(key);
    const auto first = stream.bits64();
    seen.insert({first, stream.bits64()});
  };
  const rng_key base{.seed = 9, .purpose = 9, .client = {9}, .task = {9}, .visit = 9, .index = 9};
  add(base);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint32_t value = 10 + i;
    const std::uint64_t wide = std::uint64_t{value} << 32;
    std::vector<rng_key> keys(8, base);
    keys[0].seed = value, keys[1].seed = wide, keys[2].purpose = value, keys[3].client = {value};
    keys[4].task = {value}, keys[5].visit = value, keys[6].index = value, keys[7].index = wide;
    std::for_each(keys.begin(), keys.end(), add);
  }
  CHECK(seen.size() == 8001);
}

TEST_CASE("neighboring streams are uncorrelated", "[rng]") {
  double product = 0.0; // of standardized uniforms: mean 0, standard error 1 / sqrt(draws)
  double last = 0.0;
  for (int i = 0; i < draws; ++i) {
    const double now = (stream(static_cast<std::uint64_t>(i)).uniform() - 0.5) * std::sqrt(12.0);
    product += now * last;
    last = now;
  }
  CHECK(std::abs(product / draws) < 4 / std::sqrt(double{draws}));
}

TEST_CASE("uniform draws fill their interval evenly", "[rng]") {
  auto single = stream(1);
  std::vector<int> counts(100);
  for (int i = 0; i < draws; ++i) {
    const double u = single.uniform();
    REQUIRE((u >= 0.0 && u < 1.0));
    ++counts[static_cast<std::size_t>(u * 100)];
  }
  CHECK(chi_square(counts) < 99 + 4 * std::sqrt(2.0 * 99));
  const auto ranged = measured([&] { return single.uniform(-45, 45); });
  CHECK(std::abs(ranged.mean) < 4 * 90 / std::sqrt(12.0 * draws));
  CHECK(ranged.variance == Catch::Approx(90.0 * 90 / 12).epsilon(0.01));
}

TEST_CASE("below() is uniform even if the bound does not divide 2^32", "[rng]") {
  auto single = stream(2);
  for (const std::uint64_t bound : {1ULL, 2ULL, 7ULL, 10ULL, 250ULL}) {
    std::vector<int> counts(bound);
    for (int i = 0; i < draws; ++i)
      ++counts.at(single.below(bound));
    CHECK(chi_square(counts) < double(bound) + 4 * std::sqrt(2.0 * double(bound)));
  }
  // A plain multiplication over three quarters of the range would double the probability of every third number.
  for (const std::uint64_t bound : {0xC0000000ULL, 0xC000000000000000ULL}) {
    std::vector<int> thirds(3), remainders(3);
    for (int i = 0; i < draws; ++i) {
      const auto drawn = single.below(bound);
      REQUIRE(drawn < bound);
      ++thirds[drawn / (bound / 3)];
      ++remainders[drawn % 3];
    }
    CHECK(chi_square(thirds) < 2 + 4 * 2.0);
    CHECK(chi_square(remainders) < 2 + 4 * 2.0);
  }
}

TEST_CASE("normal and exponential draws have their moments", "[rng]") {
  auto single = stream(3);
  double fourth = 0.0, beyond = 0.0;
  const auto normal = measured([&] {
    const double x = single.normal();
    fourth += x * x * x * x / draws;
    beyond += (std::abs(x) > 1.959964) / double{draws};
    return x;
  });
  CHECK(std::abs(normal.mean) < 4 / std::sqrt(double{draws}));
  CHECK(normal.variance == Catch::Approx(1.0).margin(4 * std::sqrt(2.0 / draws)));
  CHECK(fourth == Catch::Approx(3.0).margin(4 * std::sqrt(96.0 / draws)));
  CHECK(beyond == Catch::Approx(0.05).margin(4 * std::sqrt(0.05 * 0.95 / draws)));
  const auto waiting = measured([&] { return single.exponential(3.0); });
  CHECK(waiting.mean == Catch::Approx(3.0).margin(4 * 3 / std::sqrt(double{draws})));
  CHECK(waiting.variance == Catch::Approx(9.0).epsilon(0.03));
}

TEST_CASE("gamma draws have a mean and variance equal to their shape", "[rng]") {
  auto single = stream(4);
  for (const double shape : {0.05, 0.3, 1.0, 2.5, 40.0}) {
    const auto found = measured([&] { return single.gamma(shape); });
    CHECK(found.mean == Catch::Approx(shape).margin(4 * std::sqrt(shape / draws)));
    CHECK(found.variance == Catch::Approx(shape).epsilon(0.06)); // relative standard error below 1.3 % at shape 0.05
  }
}

TEST_CASE("log_gamma_variate() has the mean of the digamma function", "[rng]") {
  auto single = stream(5);
  const auto half = measured([&] { return single.log_gamma_variate(0.5); }); // digamma(1/2) = -gamma - 2 ln 2
  CHECK(half.mean == Catch::Approx(-1.963510).margin(4 * 2.2214 / std::sqrt(double{draws})));
  const auto tiny = measured([&] { return single.log_gamma_variate(1e-4); }); // digamma(a) = -1/a - gamma + O(a)
  CHECK(tiny.mean == Catch::Approx(-10000.577).margin(4 * 1e4 / std::sqrt(double{draws})));
}

TEST_CASE("Dirichlet shares sum to 1 and are finite even for a tiny beta", "[rng]") {
  auto single = stream(6);
  for (const double beta : {1e-320, 1e-300, 1e-4, 1e-3, 0.1, 1.0, 1e6, 1e300})
    for (int i = 0; i < 200; ++i) {
      const auto shares = single.dirichlet(20, beta);
      REQUIRE(std::all_of(shares.begin(), shares.end(), [](double p) { return p >= 0.0 && p <= 1.0; }));
      REQUIRE(std::accumulate(shares.begin(), shares.end(), 0.0) == Catch::Approx(1.0));
    }
  CHECK(single.dirichlet(1, 0.5) == std::vector<double>{1.0});
}

TEST_CASE("a Dirichlet share has mean 1/n and the textbook variance", "[rng]") {
  auto single = stream(7);
  constexpr int rounds = 20'000;
  for (const double beta : {0.1, 1.0, 10.0}) {
    double mean = 0.0, squares = 0.0;
    for (int i = 0; i < rounds; ++i) {
      const double share = single.dirichlet(5, beta)[i % 5];
      mean += share / rounds;
      squares += share * share / rounds;
    }
    const double variance = 0.2 * 0.8 / (5 * beta + 1);
    CHECK(mean == Catch::Approx(0.2).margin(4 * std::sqrt(variance / rounds)));
    CHECK(squares == Catch::Approx(variance + 0.04).epsilon(0.05));
  }
}

TEST_CASE("a shuffle keeps all elements and reaches all orders equally often", "[rng]") {
  auto single = stream(8);
  std::vector<int> counts(24);
  for (int i = 0; i < 24'000; ++i) {
    std::array<int, 4> order{0, 1, 2, 3};
    single.shuffle(std::span<int>(order));
    std::size_t rank = 0; // Lehmer code
    for (std::size_t a = 0; a < 4; ++a)
      rank = rank * (4 - a) +
             static_cast<std::size_t>(std::count_if(order.begin() + static_cast<std::ptrdiff_t>(a), order.end(),
                                                    [&](int other) { return other < order[a]; }));
    ++counts.at(rank);
  }
  CHECK(chi_square(counts) < 23 + 4 * std::sqrt(2.0 * 23));
}
