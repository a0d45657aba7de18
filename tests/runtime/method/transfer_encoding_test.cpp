#include "runtime/method/transfer_encoding.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;

namespace {

const std::vector<parameter> two_parameters{{.name = "a", .shape = {4}, .offset = 0, .size = 4},
                                            {.name = "b", .shape = {2}, .offset = 4, .size = 2}};

tensors_ref one(const char* name, at::Tensor value) {
  auto map = std::make_shared<tensor_map>();
  map->put(name, std::move(value));
  return map;
}

at::Tensor floats(std::vector<float> values) { return at::tensor(values); }

at::Tensor arrived(const char* name, const at::Tensor& value, wire_format format) {
  return convert_for_transfer(one(name, value), format, two_parameters)->at(name);
}

/// Values of all magnitudes and signs, including ties of both half-precision formats.
at::Tensor many_floats() {
  std::vector<float> values{0.0f,     -0.0f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 65504.0f,
                            70000.0f, 1e-7f};
  for (int i = 0; i < 200; ++i)
    values.push_back(std::sin(static_cast<float>(i)) * std::pow(10.0f, static_cast<float>(i % 13 - 8)));
  return floats(values);
}

} // namespace

TEST_CASE("float32 elements take 4, 2, 2 or 1 bytes, other elements their own size") {
  tensor_map map;
  map.put("weights", at::zeros({10, 3}));
  map.put("gram", at::zeros({2, 2}, at::kDouble));
  map.put("count", at::zeros({5}, at::kLong));
  map.put("none", at::zeros({0}));
  const std::int64_t others = 4 * 8 + 5 * 8;
  CHECK(wire_bytes(&map, wire_format::fp32) == 30 * 4 + others);
  CHECK(wire_bytes(&map, wire_format::fp16) == 30 * 2 + others);
  CHECK(wire_bytes(&map, wire_format::bf16) == 30 * 2 + others);
  CHECK(wire_bytes(&map, wire_format::int8) == 30 * 1 + others);
  CHECK(wire_bytes(nullptr, wire_format::fp32) == 0);
}

TEST_CASE("fp32 returns the same tensor without a copy, and null for null") {
  const auto sent = one("weights", floats({1, 2, 3}));
  CHECK(convert_for_transfer(sent, wire_format::fp32, {}) == sent);
  CHECK(convert_for_transfer(nullptr, wire_format::int8, {}) == nullptr);
}

TEST_CASE("half formats round like LibTorch, and rounding twice equals rounding once") {
  const auto values = many_floats();
  for (auto [format, type] : {std::pair{wire_format::fp16, at::kHalf}, std::pair{wire_format::bf16, at::kBFloat16}}) {
    const auto once = arrived("x", values, format);
    CHECK(once.scalar_type() == at::kFloat);
    CHECK(at::equal(once, values.to(type).to(at::kFloat)));
    CHECK(at::equal(arrived("x", once, format), once));
  }
  CHECK(arrived("x", floats({1.0f + 0x1p-11f, 1.0f + 0x3p-11f}), wire_format::fp16)
            .equal(floats({1.0f, 1.0f + 0x1p-9f})));
  CHECK(
      arrived("x", floats({1.0f + 0x1p-8f, 1.0f + 0x3p-8f}), wire_format::bf16).equal(floats({1.0f, 1.0f + 0x1p-6f})));
}

TEST_CASE("int8 has 127 steps up to the largest value and rounds ties to even") {
  // The maximum is 254, so a step is 2; 1
  // 2 = 0.5 -> 0, 3
  // 2 = 1.5 -> 2, 5
  // 2 = 2.5 -> 2, -5
  // 2 -> -2.
  const auto after = arrived("x", floats({254, -254, 1, 3, 5, -5, 100.9f}), wire_format::int8);
  CHECK(at::equal(after, floats({254, -254, 0, 4, 4, -4, 100})));
}

TEST_CASE("int8 scales each parameter of the flat weights separately") {
  const auto flat = floats({127, 1, 0.4f, -2, 0.254f, 0.001f}); // steps of 1 and of 0.002
  const auto after = arrived(flat_weights, flat, wire_format::int8);
  const auto step = 0.254f / 127.0f;
  CHECK(at::equal(after, floats({127, 1, 0, -2, 127 * step, 0})));
  CHECK(at::equal(arrived("another name", flat, wire_format::int8), floats({127, 1, 0, -2, 0, 0})));
}

TEST_CASE("flat weights may contain only the first or only the last layers") {
  const std::vector<parameter> three{{.name = "a", .shape = {4}, .offset = 0, .size = 4},
                                     {.name = "b", .shape = {1}, .offset = 4, .size = 1},
                                     {.name = "c", .shape = {2}, .offset = 5, .size = 2}};
  const auto after = [&](const at::Tensor& flat) {
    return convert_for_transfer(one(flat_weights, flat), wire_format::int8, three)->at(flat_weights);
  };
  const float small = 0.254f / 127.0f;
  CHECK(at::equal(after(floats({127, 0.4f, 2, 1, 0.254f})), floats({127, 0, 2, 1, 127 * small}))); // a, b
  CHECK(at::equal(after(floats({0.254f, 127, 0.4f})), floats({127 * small, 127, 0})));             // b, c
  CHECK(at::equal(after(floats({127, 0, 2, 1, 0.254f, 127, 0.4f})), floats({127, 0, 2, 1, 127 * small, 127, 0})));
}

TEST_CASE("int8 handles zeros, the smallest numbers, empty tensors, and infinities") {
  CHECK(at::equal(arrived("x", at::zeros({3}), wire_format::int8), at::zeros({3})));
  CHECK(arrived("x", at::zeros({0}), wire_format::int8).numel() == 0);
  CHECK(arrived("x", floats({1e-45f, -1e-45f}), wire_format::int8).abs().max().item<float>() <= 1e-45f);
  for (float bad : {NAN, INFINITY})
    CHECK(arrived("x", floats({1, bad}), wire_format::int8).isnan().all().item<bool>());
}

TEST_CASE("tensors other than float32 are sent unchanged in every format") {
  const auto counts = at::arange(300, at::kLong);
  const auto sums = at::arange(3, at::kDouble) / 7;
  for (auto format : {wire_format::fp16, wire_format::bf16, wire_format::int8}) {
    CHECK(arrived("count", counts, format).is_same(counts));
    CHECK(arrived("sum", sums, format).is_same(sums));
  }
}

TEST_CASE("converting a tensor for transfer does not modify it") {
  const auto values = many_floats();
  const auto before = values.clone();
  for (auto format : {wire_format::fp16, wire_format::bf16, wire_format::int8})
    (void)arrived("x", values, format);
  CHECK(at::equal(values, before));
}
