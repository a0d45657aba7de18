#include "runtime/base/non_owning.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("a weak handle of a counted object expires with the last owner") {
  auto owner = std::make_shared<int>(7);
  const weak_handle<int> known(owner);
  CHECK(owner.use_count() == 1);
  CHECK_FALSE(known.expired());
  owner.reset();
  CHECK(known.expired());
}

TEST_CASE("a weak handle of an object that is not owned does not expire") {
  const auto owner = std::make_shared<int>(7);
  const weak_handle<int> known(non_owning(owner));
  CHECK(owner.use_count() == 1);
  CHECK_FALSE(known.expired());
}

TEST_CASE("an empty weak handle is expired") { CHECK(weak_handle<int>{}.expired()); }
