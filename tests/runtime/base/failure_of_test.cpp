#include "runtime/base/failure_of.hpp"
#include "runtime/base/tensor_exchange.hpp"
#include <c10/util/Exception.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("every exception becomes a text; no exception gives an empty text") {
  CHECK(failure_of([] {}).empty());
  CHECK(failure_of([] { throw std::runtime_error("the disk is full"); }) == "the disk is full");
  CHECK(failure_of([] { throw std::runtime_error(""); }) == "threw an exception without words");
  CHECK(failure_of([] { throw 7; }) == "threw something that is not a std::exception");
  CHECK(failure_of([] { throw std::bad_alloc(); }).starts_with("out of memory; a smaller worker.models_max"));
  CHECK(failure_of([] { TORCH_CHECK(false, "shapes differ"); }) == "shapes differ");
}

TEST_CASE("LibTorch's errors are shortened to a sentence; out of memory is not") {
  CHECK(torch_refusal([] {}).empty());
  CHECK(torch_refusal([] { throw std::runtime_error("\n  in a stack\nRuntimeError: shapes differ\nmore"); }) ==
        "shapes differ");
  CHECK(torch_refusal([] { TORCH_CHECK(false, "first line\nsecond"); }) == "first line");
  CHECK_THROWS_AS(torch_refusal([] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_CASE("errors of saved bytes are distinguished from other failures") {
  CHECK(archive_damage([] {}).empty());
  CHECK(archive_damage([] { throw archive_error("ends early"); }) == "ends early");
  CHECK_THROWS_AS(archive_damage([] { throw std::runtime_error("other"); }), std::runtime_error);
}
