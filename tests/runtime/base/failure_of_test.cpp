#include "runtime/base/failure_of.hpp"
#include "runtime/base/tensor_exchange.hpp"
#include <c10/util/Exception.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("failure_of() returns the text of an exception, or \"\" without one") {
  CHECK(failure_of([] {}).empty());
  CHECK(failure_of([] { throw std::runtime_error("the disk is full"); }) == "the disk is full");
  CHECK(failure_of([] { throw std::runtime_error(""); }) == "threw an exception without words");
  CHECK(failure_of([] { throw 7; }) == "threw something that is not a std::exception");
  CHECK(failure_of([] { throw std::bad_alloc(); }).starts_with("out of memory; a smaller worker.models_max"));
  CHECK(failure_of([] { TORCH_CHECK(false, "shapes differ"); }) == "shapes differ");
}

TEST_CASE("failure_of() shortens errors of LibTorch but not out of memory") {
  CHECK(torch_refusal([] {}).empty());
  CHECK(torch_refusal([] { throw std::runtime_error("\n  in a stack\nRuntimeError: shapes differ\nmore"); }) ==
        "shapes differ");
  CHECK(torch_refusal([] { TORCH_CHECK(false, "first line\nsecond"); }) == "first line");
  CHECK_THROWS_AS(torch_refusal([] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_CASE("failure_of() distinguishes errors of saved bytes from other failures") {
  CHECK(archive_damage([] {}).empty());
  CHECK(archive_damage([] { throw archive_error("ends early"); }) == "ends early");
  CHECK_THROWS_AS(archive_damage([] { throw std::runtime_error("other"); }), std::runtime_error);
}
