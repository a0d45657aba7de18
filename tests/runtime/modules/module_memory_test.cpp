#include "runtime/modules/load_module.hpp"
#include "runtime/modules/module_memory.hpp"
#include "tests/support/module_files.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <new>
#include <thread>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

at::Tensor bytes_of_memory(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

expected<std::shared_ptr<const module_net>> load(const made_program& program, module_requirements requirements = {}) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt2", program);
  requirements.input = {1, 6, 6};
  requirements.classes = 5;
  requirements.trained = requirements.training = true;
  requirements.guards.sandbox = false;
  return load_module(folder.path() / "net.pt2", requirements);
}

json size_named(const std::string& name) { return {{"as_sym_int", {{"as_name", name}}}}; }

/// Dropout of rows times a parameter [36], and the integer `area`: the square of the number of rows.
std::pair<made_program, json> dropped_rows() {
  auto made = scaled_rows();
  const auto scaled = tensor_named(made.nodes.back()["name"].get<std::string>());
  const auto dropped = made.call("dropout.default", {{"input", scaled}, {"p", real(0.5)}, {"train", flag(true)}});
  made.size_call("sym_size.int", {{"self", tensor_named("x")}, {"dim", number(0)}}, "rows");
  made.size_call("_operator.mul", {{"a", size_named("rows")}, {"b", size_named("rows")}}, "area");
  return {made, dropped};
}

/// Adds 0 times the sum of ones [area, 1024]: 4 KiB for each pair of rows.
made_program program_with_pairs_of_rows() {
  auto [made, dropped] = dropped_rows();
  const json shape = {{"as_sym_ints", json::array({{{"as_name", "area"}}, {{"as_int", 1024}}})}};
  const auto sum = made.call("sum.default", {{"self", made.call("ones.default", {{"size", shape}})}});
  made.call("add.Tensor", {{"self", dropped}, {"other", sum}, {"alpha", real(0.0)}});
  return made;
}

/// Adds a row of the parameter's expansion to [16 area, 36], whose gradient has that size.
made_program program_with_large_gradient() {
  auto [made, dropped] = dropped_rows();
  made.size_call("_operator.mul", {{"a", size_named("area")}, {"b", number(16)}}, "many");
  const json shape = {{"as_sym_ints", json::array({{{"as_name", "many"}}, {{"as_int", 36}}})}};
  const auto expanded = made.call("expand.default", {{"self", tensor_named("scale")}, {"size", shape}});
  const auto row = made.call("select.int", {{"self", expanded}, {"dim", number(0)}, {"index", number(0)}});
  made.call("add.Tensor", {{"self", dropped}, {"other", row}});
  return made;
}

at::Tensor weights_of(const module_net& net) {
  auto flat = initial_weights(net, 1);
  net.put_own_values(flat);
  return flat.unsqueeze(0);
}

} // namespace

TEST_CASE("tensors within a limit are allocated, and one beyond it is refused") {
  const module_memory memory(4 * mebibyte);
  const auto first = bytes_of_memory(3 * mebibyte);
  CHECK_FALSE(memory.is_exceeded());
  CHECK_THROWS_AS(bytes_of_memory(2 * mebibyte), std::bad_alloc);
  CHECK(memory.is_exceeded());
}

TEST_CASE("released memory can be allocated again") {
  const module_memory memory(4 * mebibyte);
  for (int turn = 0; turn < 5; ++turn)
    CHECK_NOTHROW(bytes_of_memory(3 * mebibyte));
  CHECK_FALSE(memory.is_exceeded());
}

TEST_CASE("memory counts until the limit ends, and allocations outside of a limit do not count") {
  CHECK_NOTHROW(module_memory::charge(std::int64_t{1} << 60));
  {
    const module_memory memory(4 * mebibyte);
    module_memory::charge(3 * mebibyte);
    CHECK_THROWS_AS(module_memory::charge(2 * mebibyte), std::bad_alloc);
    CHECK_THROWS_AS(bytes_of_memory(2 * mebibyte), std::bad_alloc);
    CHECK_NOTHROW(bytes_of_memory(mebibyte / 2));
  }
  CHECK_NOTHROW(bytes_of_memory(8 * mebibyte));
}

TEST_CASE("a limit applies to its own thread, and an inner one ends with its scope") {
  const module_memory memory(4 * mebibyte);
  {
    const module_memory inner(16 * mebibyte);
    CHECK_NOTHROW(bytes_of_memory(8 * mebibyte));
  }
  bool was_given = false;
  std::thread([&] { was_given = bytes_of_memory(8 * mebibyte).defined(); }).join();
  CHECK(was_given);
  CHECK_THROWS_AS(bytes_of_memory(8 * mebibyte), std::bad_alloc);
}

TEST_CASE("a module whose probe needs too much memory is refused with the limit") {
  auto made = scaled_rows();
  const auto scaled = tensor_named(made.nodes.back()["name"].get<std::string>());
  const auto sum =
      made.call("sum.default", {{"self", made.call("ones.default", {{"size", numbers({std::int64_t{1} << 23})}})}});
  made.call("add.Tensor", {{"self", scaled}, {"other", sum}});
  const auto net = load(made, {.guards = {.sandbox_memory_bytes = 16 * mebibyte}});
  REQUIRE_FALSE(net.has_value());
  CHECK_THAT(diagnostic_text(net.error().front()),
             ContainsSubstring(
                 "net.pt2: error: forward needs more than the 16777216 bytes of memory that its trial may take"));
}

TEST_CASE("a module that needs too much memory on the run's rows is named with the limit") {
  const auto net = load(program_with_pairs_of_rows());
  REQUIRE(net.has_value());
  const at::NoGradGuard no_gradients;
  const training_mode training;
  const auto pass = [&](std::int64_t rows) {
    tape kept;
    auto weights = weights_of(**net);
    return as_model(*net).forward(weights, at::ones({1, rows, 1, 6, 6}), {0, 5}, &kept, &training);
  };
  CHECK_NOTHROW(pass(20));
  CHECK_THROWS_MATCHES(pass(1024), std::runtime_error,
                       MessageMatches(ContainsSubstring("net.pt2': forward failed on rows 0 to 1023 of 1024: it needs "
                                                        "more than 1") &&
                                      ContainsSubstring("bytes of memory, the limit for its rows (docs/modules.md)")));
  CHECK_NOTHROW(pass(20));
}

TEST_CASE("a gradient that needs too much memory is named with the limit") {
  const auto net = load(program_with_large_gradient());
  REQUIRE(net.has_value());
  const at::NoGradGuard no_gradients;
  const auto weights = weights_of(**net);
  tape kept;
  const training_mode training;
  const auto outputs = as_model(*net).forward(weights, at::ones({1, 1024, 1, 6, 6}), {}, &kept, &training);
  auto into = at::zeros_like(weights);
  CHECK_THROWS_MATCHES(
      (*net)->backward(weights, kept, {}, {}, outputs.features, {}, {into, 1.0F, false}), std::runtime_error,
      MessageMatches(ContainsSubstring("net.pt2': its gradient failed on 1024 rows: it needs more than")));
}
