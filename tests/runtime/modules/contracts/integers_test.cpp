#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t smallest_of_32 = std::numeric_limits<std::int32_t>::min();

at::Tensor integers(std::vector<std::int64_t> numbers, at::ScalarType type = at::kLong) {
  return at::tensor(numbers, at::kLong).to(type);
}

std::string divided(const char* name, const c10::IValue& whole, const c10::IValue& by) {
  named_arguments given{{"self", whole}, {"other", by}};
  if (std::string(name).find("_mode") != std::string::npos)
    given.emplace_back("rounding_mode", "trunc");
  return contract_error(name, given);
}

} // namespace

TEST_CASE("integer tensor division by 0, and of the smallest integer by -1, is refused") {
  for (const auto* const name : {"aten::div.Tensor_mode", "aten::floor_divide", "aten::remainder.Tensor",
                                 "aten::fmod.Tensor", "aten::div_.Tensor_mode", "aten::floor_divide_.Tensor"}) {
    CAPTURE(name);
    CHECK(divided(name, integers({7, -7}), integers({-1, 2})).empty());
    CHECK(divided(name, integers({smallest}), integers({1})).empty());
    CHECK_THAT(divided(name, integers({5, smallest}), integers({2, -1})),
               ContainsSubstring("-9223372036854775808 is divided by -1, which no integer of its type holds"));
    CHECK_THAT(divided(name, integers({smallest_of_32}, at::kInt), integers({-1}, at::kInt)),
               ContainsSubstring("-2147483648 is divided by -1"));
    CHECK(divided(name, integers({smallest_of_32}), integers({-1})).empty()); // 2^31 fits 64 bits
    CHECK_THAT(divided(name, integers({5}), integers({1, 0})), ContainsSubstring("divided by zero"));
    CHECK(divided(name, at::ones({2}), at::zeros({2})).empty()); // infinite
  }
  CHECK_THAT(divided("aten::div.Scalar_mode", integers({smallest}), -1), ContainsSubstring("is divided by -1"));
  CHECK_THAT(divided("aten::div.Scalar_mode", integers({smallest_of_32}, at::kInt), -1),
             ContainsSubstring("-2147483648 is divided by -1"));
  CHECK_THAT(divided("aten::remainder.Scalar_Tensor", smallest, integers({-1})), ContainsSubstring("is divided by -1"));
  CHECK(divided("aten::remainder.Scalar", integers({smallest}), 2.5).empty());
  CHECK(divided("aten::gcd", integers({5}), integers({0})).empty());
  CHECK_THAT(divided("aten::gcd", integers({smallest}), integers({-1})), ContainsSubstring("is divided by -1"));
  CHECK_THAT(divided("aten::gcd", integers({-1}), integers({smallest})), ContainsSubstring("is divided by -1"));
}

TEST_CASE("true division has no contract, so nets pay nothing for it") {
  for (const auto* const overload : {"Tensor", "Scalar"})
    CHECK(find_contract(schema_of_operator("aten::div", overload)) == nullptr);
  for (const auto* const name : {"aten::add", "aten::mul"})
    CHECK(find_contract(schema_of_operator(name, "Tensor")) == nullptr);
  CHECK(find_contract(schema_of_operator("aten::slice", "Tensor")) == nullptr);
  CHECK(find_contract(schema_of_operator("aten::relu", "")) == nullptr);
}

TEST_CASE("integers are shifted by 0 to 63 bits") {
  const auto shifted = [](const char* name, std::int64_t by) {
    return contract_error(name, {{"self", integers({1})}, {"other", by}});
  };
  for (const auto* const name : {"aten::__lshift__.Scalar", "aten::__rshift__.Scalar"}) {
    CHECK(shifted(name, 0).empty());
    CHECK(shifted(name, 63).empty());
    for (const std::int64_t by : {std::int64_t{64}, std::int64_t{-1}, smallest})
      CHECK_THAT(shifted(name, by), ContainsSubstring("expected 0 to 63"));
  }
}

TEST_CASE("repeat counts must be positive and sum to the size of a possible tensor") {
  const auto repeated = [](const at::Tensor& counts) {
    return contract_error("aten::repeat_interleave.self_Tensor", {{"self", at::ones({4})}, {"repeats", counts}});
  };
  CHECK(repeated(integers({1, 2, 0, 3})).empty());
  CHECK(contract_error("aten::repeat_interleave.Tensor", {{"repeats", integers({1, 2})}}).empty());
  CHECK_THAT(repeated(integers({1, -2, 0, 3})), ContainsSubstring("negative"));
  CHECK_THAT(repeated(at::ones({4})), ContainsSubstring("no integers"));
  const auto large = std::int64_t{1} << 62;
  for (const auto* const name : {"aten::repeat_interleave.Tensor", "aten::repeat_interleave.self_Tensor"})
    CHECK_THAT(contract_error(name, {{"repeats", integers({large, large, large, large, 4})}}),
               ContainsSubstring("its result would have 18446744073709551616 parts; expected at most 2147483648"));
  CHECK_THAT(repeated(integers({large})), ContainsSubstring("its result would have"));
  CHECK(contract_error("aten::repeat_interleave.self_int", {{"self", at::ones({4})}, {"repeats", 3}}).empty());
  CHECK_THAT(contract_error("aten::repeat_interleave.self_int", {{"self", at::ones({4})}, {"repeats", large}}),
             ContainsSubstring("its result would have"));
}
