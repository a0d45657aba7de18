#include "runtime/base/exception_message.hpp"
#include "runtime/base/tensor_exchange.hpp"
#include <c10/util/Exception.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("failure_of() returns the text of an exception, or \"\" without one") {
  CHECK(exception_message_of([] {}).empty());
  CHECK(exception_message_of([] { throw std::runtime_error("the disk is full"); }) == "the disk is full");
  CHECK(exception_message_of([] { throw std::runtime_error(""); }) == "threw an exception without a message");
  CHECK(exception_message_of([] { throw 7; }) == "threw something that is not a std::exception");
  CHECK(exception_message_of([] {
          throw std::bad_alloc();
        }).starts_with("out of memory; a smaller worker.fused_clients_max"));
  CHECK(exception_message_of([] { TORCH_CHECK(false, "shapes differ"); }) == "shapes differ");
}

TEST_CASE("failure_of() shortens errors of LibTorch but not out of memory") {
  CHECK(torch_error_of([] {}).empty());
  CHECK(torch_error_of([] { throw std::runtime_error("\n  in a stack\nRuntimeError: shapes differ\nmore"); }) ==
        "shapes differ");
  CHECK(torch_error_of([] { TORCH_CHECK(false, "first line\nsecond"); }) == "first line");
  CHECK_THROWS_AS(torch_error_of([] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST_CASE("failure_of() distinguishes errors of saved bytes from other failures") {
  CHECK(archive_error_of([] {}).empty());
  CHECK(archive_error_of([] { throw archive_error("ends early"); }) == "ends early");
  CHECK_THROWS_AS(archive_error_of([] { throw std::runtime_error("other"); }), std::runtime_error);
}
