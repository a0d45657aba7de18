#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto enormous = std::int64_t{1} << 62;

/// Accepted call of an operator, and one with too large a result.
struct sized_call {
  const char* name;
  named_arguments right, wrong;
};

} // namespace

TEST_CASE("results have at most 2^31 elements") {
  const auto row = at::ones({1, 4});
  const std::vector<sized_call> calls{
      {"aten::expand",
       {{"self", row}, {"size", integer_list({3, -1})}},
       {{"self", row}, {"size", integer_list({enormous, -1})}}},
      {"aten::broadcast_to",
       {{"self", row}, {"size", integer_list({2, 3, 4})}},
       {{"self", row}, {"size", integer_list({1 << 20, 1 << 20, 4})}}},
      {"aten::repeat",
       {{"self", row}, {"repeats", integer_list({2, 2})}},
       {{"self", row}, {"repeats", integer_list({enormous, 1})}}},
      {"aten::tile", {{"self", row}, {"dims", integer_list({2})}}, {{"self", row}, {"dims", integer_list({enormous})}}},
      {"aten::zeros", {{"size", integer_list({3, 4})}}, {{"size", integer_list({1 << 30, 1 << 30})}}},
      {"aten::full",
       {{"size", integer_list({3})}, {"fill_value", 1.0}},
       {{"size", integer_list({enormous})}, {"fill_value", 1.0}}},
      {"aten::new_ones",
       {{"self", row}, {"size", integer_list({3})}},
       {{"self", row}, {"size", integer_list({enormous})}}},
      {"aten::arange", {{"end", 9}}, {{"end", enormous}}},
      {"aten::arange.start_step",
       {{"start", 0}, {"end", 9}, {"step", 2}},
       {{"start", 0.0}, {"end", 1e300}, {"step", 1e-300}}},
      {"aten::arange.start", {{"start", enormous - 4}, {"end", enormous}}, {{"start", -enormous}, {"end", 0}}},
      {"aten::linspace",
       {{"start", 0.0}, {"end", 1.0}, {"steps", 5}},
       {{"start", 0.0}, {"end", 1.0}, {"steps", enormous}}},
      {"aten::eye", {{"n", 3}}, {{"n", 1 << 20}}},
      {"aten::eye.m", {{"n", 3}, {"m", 4}}, {{"n", 3}, {"m", enormous}}},
      {"aten::one_hot",
       {{"self", at::ones({2}, at::kLong)}, {"num_classes", 3}},
       {{"self", at::ones({2}, at::kLong)}, {"num_classes", enormous}}},
      {"aten::one_hot", {{"self", at::ones({2}, at::kLong)}}, {{"self", at::full({2}, enormous, at::kLong)}}}};
  for (const auto& call : calls) {
    CAPTURE(call.name);
    CHECK(contract_error(call.name, call.right).empty());
    CHECK_THAT(contract_error(call.name, call.wrong), ContainsSubstring("numbers; expected at most 2147483648"));
  }
  CHECK(contract_error("aten::zeros", {{"size", integer_list({enormous})}}) ==
        "aten::zeros: its result would have 4611686018427387904 numbers; expected at most 2147483648");
}

TEST_CASE("a tensor is split into at most 65536 parts") {
  const auto long_row = at::zeros({1}).expand({1 << 20});
  const std::vector<sized_call> calls{
      {"aten::unbind.int", {{"self", at::ones({3, 4})}, {"dim", 0}}, {{"self", long_row}, {"dim", 0}}},
      {"aten::split.Tensor",
       {{"self", long_row}, {"split_size", 64}, {"dim", 0}},
       {{"self", long_row}, {"split_size", 1}, {"dim", 0}}},
      {"aten::chunk",
       {{"self", long_row}, {"chunks", 64}, {"dim", 0}},
       {{"self", long_row}, {"chunks", enormous}, {"dim", 0}}},
      {"aten::tensor_split.sections",
       {{"self", long_row}, {"sections", 64}, {"dim", 0}},
       {{"self", long_row}, {"sections", enormous}, {"dim", 0}}}};
  for (const auto& call : calls) {
    CAPTURE(call.name);
    CHECK(contract_error(call.name, call.right).empty());
    CHECK_THAT(contract_error(call.name, call.wrong), ContainsSubstring("tensors; expected at most 65536"));
  }
  CHECK(
      contract_error("aten::split_with_sizes", {{"self", long_row}, {"split_sizes", integer_list({1, 2})}, {"dim", 0}})
          .empty());
}

TEST_CASE("calls declare the memory that they allocate outside of LibTorch's allocator") {
  const auto bytes = [](const std::string& name, const std::string& overload, const named_arguments& given) {
    const auto& schema = schema_of_operator(name, overload);
    const auto arguments = arguments_of(schema, given);
    return find_contract(schema)->bytes({schema, arguments});
  };
  CHECK(bytes("aten::unbind", "int", {{"self", at::ones({3, 4})}, {"dim", 1}}) == 4 * 512);
}
