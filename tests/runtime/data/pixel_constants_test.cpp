// Means and deviations of the real files, computed with Python alone:
//   python3 -c 'import collections,gzip,sys; c=collections.Counter(gzip.open(sys.argv[1]).read()[16:])
//   n=sum(c.values()); m=sum(k*v for k,v in c.items())/n; v=sum(k*k*v for k,v in c.items())/n-m*m
//   print(m/255, v**0.5/255)' IMAGES.gz
#include "runtime/data/data_sources.hpp"
#include "runtime/data/pixel_constants.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

void check(const pixel_constants& found, double mean, double deviation) {
  REQUIRE(found.mean.size() == 1);
  CHECK_THAT(found.mean[0], WithinRel(mean, 1e-12));
  CHECK_THAT(found.deviation[0], WithinRel(deviation, 1e-9));
}

} // namespace

TEST_CASE("mean and deviation of pixels are computed per channel", "[data]") {
  const auto images = at::tensor({0, 255, 0, 255, 51, 51, 51, 51}, at::kByte).view({1, 2, 2, 2});
  const auto found = measure_constants(images);
  CHECK_THAT(found.mean[0], WithinRel(0.5, 1e-12));
  CHECK_THAT(found.deviation[0], WithinRel(0.5, 1e-12));
  CHECK_THAT(found.mean[1], WithinRel(0.2, 1e-12));
  CHECK(found.deviation[1] == 1.0); // all values equal
}

TEST_CASE("USPS has these pixel constants", "[data]") {
  MNEME_NEEDS_DATA(folder, "usps");
  const auto data = load_data({.name = "usps", .root = folder.parent_path()}, 1);
  REQUIRE(data);
  check(measure_constants(data->train.images), 0.2544798864803774, 0.38462137578979244);
}

TEST_CASE("emnist47 has these pixel constants", "[data]") {
  MNEME_NEEDS_DATA(folder, "emnist47");
  const auto data = load_data({.name = "emnist47", .root = folder.parent_path()}, 1);
  REQUIRE(data);
  check(measure_constants(data->train.images), 0.17491149185738125, 0.33299021784049887);
}
