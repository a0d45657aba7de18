#include "runtime/base/non_owning.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("an object that was known by a handle that counts is gone with the last of them") {
  auto owner = std::make_shared<int>(7);
  const weak_handle<int> known(owner);
  CHECK(owner.use_count() == 1);
  CHECK_FALSE(known.expired());
  owner.reset();
  CHECK(known.expired());
}

TEST_CASE("an object that was known by a handle that does not count outlives who knows it") {
  const auto owner = std::make_shared<int>(7);
  const weak_handle<int> known(non_owning(owner));
  CHECK(owner.use_count() == 1);
  CHECK_FALSE(known.expired());
}

TEST_CASE("nothing is known at first") { CHECK(weak_handle<int>{}.expired()); }
