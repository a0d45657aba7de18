#include "runtime/modules/load_module.hpp"
#include "runtime/modules/module_memory.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/script_modules.hpp"
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

expected<std::shared_ptr<const module_net>> load_lines(const std::string& lines, module_requirements demands = {}) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt",
               {.code = "def forward(self, x):\n    y = torch.flatten(x, 1) * self.weight\n" + lines + "    return y\n",
                .parameters = {{"weight", at::ones({36})}}});
  demands.input = {1, 6, 6};
  demands.classes = 5;
  demands.layers.sandbox = false;
  return load_module(folder.path() / "net.pt", demands);
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
  const auto net =
      load_lines("    y = y + torch.sum(torch.ones([8388608]))\n", {.layers = {.sandbox_memory_bytes = 16 * mebibyte}});
  REQUIRE_FALSE(net.has_value());
  CHECK_THAT(
      diagnostic_text(net.error().front()),
      ContainsSubstring("net.pt: error: forward needs more than the 16777216 bytes of memory that its trial may take"));
}

TEST_CASE("a module that needs too much memory on the run's rows is named with the limit") {
  const auto net =
      load_lines("    if bool(torch.max(x) > 1000.0):\n        y = y + torch.sum(torch.ones([x.size(1) << 30]))\n");
  REQUIRE(net.has_value());
  const at::NoGradGuard no_gradients;
  const auto pass = [&](double value) {
    return as_model(*net).forward(weights_of(**net), at::full({1, 20, 1, 6, 6}, value), {0, 5}, nullptr);
  };
  CHECK_NOTHROW(pass(1.0));
  CHECK_THROWS_MATCHES(pass(2000.0), std::runtime_error,
                       MessageMatches(ContainsSubstring("net.pt': forward failed on rows 0 to 15 of 20: it needs more "
                                                        "than 1") &&
                                      ContainsSubstring("bytes of memory, the limit for its rows (docs/modules.md)")));
  CHECK_NOTHROW(pass(1.0));
}

TEST_CASE("a gradient that needs too much memory is named with the limit") {
  const auto net = load_lines("    if bool(torch.max(x) > 1000.0):\n"
                              "        y = y + self.weight.expand([1 << 25, 36])[0]\n");
  REQUIRE(net.has_value());
  const at::NoGradGuard no_gradients;
  const auto weights = weights_of(**net);
  tape kept;
  const training_mode training;
  const auto outputs = as_model(*net).forward(weights, at::full({1, 20, 1, 6, 6}, 2000.0), {}, &kept, &training);
  auto into = at::zeros_like(weights);
  CHECK_THROWS_MATCHES(
      (*net)->backward(weights, kept, {}, {}, outputs.features, {}, {into, 1.0F, false}), std::runtime_error,
      MessageMatches(ContainsSubstring("net.pt': its gradient failed on 20 rows: it needs more than")));
}
