#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* attention_name = "aten::scaled_dot_product_attention";

named_arguments attention_call() {
  return {{"query", at::ones({2, 4, 5, 8})}, {"key", at::ones({2, 4, 7, 8})}, {"value", at::ones({2, 4, 7, 8})}};
}

std::string with_changed(const std::string& name, const c10::IValue& value) {
  return contract_error(attention_name, with_argument(attention_call(), name, value));
}

named_arguments multi_head_call() {
  return {{"query", at::ones({2, 5, 8})},
          {"key", at::ones({2, 5, 8})},
          {"value", at::ones({2, 5, 8})},
          {"embed_dim", 8},
          {"num_head", 2},
          {"qkv_weight", at::ones({24, 8})},
          {"qkv_bias", at::ones({24})},
          {"proj_weight", at::ones({8, 8})},
          {"proj_bias", at::ones({8})}};
}

std::string multi_head_with(const std::string& name, const c10::IValue& value) {
  return contract_error("aten::_native_multi_head_attention", with_argument(multi_head_call(), name, value));
}

} // namespace

TEST_CASE("attention with as many keys as values is accepted, with each form of a mask") {
  CHECK(contract_error(attention_name, attention_call()).empty());
  CHECK(with_changed("value", at::ones({2, 4, 7, 3})).empty());
  CHECK(with_changed("query", at::ones({1, 4, 5, 8})).empty()); // LibTorch broadcasts it
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {5, 7}, {1, 7}, {5, 1}, {2, 4, 5, 7}, {1, 1, 5, 7}, {2, 1, 1, 7}, {4, 5, 7}})
    CHECK(with_changed("attn_mask", at::zeros(shape)).empty());
  CHECK(contract_error(attention_name,
                       {{"query", at::ones({5, 8})}, {"key", at::ones({7, 8})}, {"value", at::ones({7, 8})}})
            .empty());
}

TEST_CASE("attention with different numbers of keys and values is refused with both shapes") {
  CHECK(with_changed("key", at::ones({2, 4, 1, 8})) ==
        "aten::scaled_dot_product_attention: keys are [2, 4, 1, 8] and values [2, 4, 7, 8]; expected the same shape "
        "but for the last axis");
  CHECK_THAT(with_changed("value", at::ones({2, 4, 9, 8})), ContainsSubstring("values [2, 4, 9, 8]"));
  CHECK_THAT(with_changed("value", at::ones({2, 1, 7, 8})), ContainsSubstring("values [2, 1, 7, 8]"));
  CHECK_THAT(with_changed("value", at::ones({7, 8})), ContainsSubstring("values [7, 8]"));
  CHECK_THAT(with_changed("query", at::ones({2, 4, 5, 6})),
             ContainsSubstring("queries are [2, 4, 5, 6] and keys [2, 4, 7, 8]; expected the same last axis"));
  CHECK_THAT(with_changed("key", at::ones({8})), ContainsSubstring("fewer than two axes"));
  CHECK_THAT(with_changed("value", c10::IValue{}), ContainsSubstring("fewer than two axes"));
}

TEST_CASE("attention refuses masks that fit neither queries nor keys, and groups without heads") {
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{5, 3}, {4, 7}, {3, 1, 5, 7}, {2, 3, 5, 7}})
    CHECK_THAT(with_changed("attn_mask", at::zeros(shape)), ContainsSubstring("expected [..., 5, 7]"));
  named_arguments grouped{{"query", at::ones({2, 4, 5, 8})},
                          {"key", at::ones({2, 2, 7, 8})},
                          {"value", at::ones({2, 2, 7, 8})},
                          {"enable_gqa", true}};
  CHECK(contract_error(attention_name, grouped).empty());
  for (const std::int64_t heads : {0, 3}) {
    grouped[1].second = grouped[2].second = at::ones({2, heads, 7, 8});
    CHECK_THAT(contract_error(attention_name, grouped), ContainsSubstring("expected a multiple (enable_gqa)"));
  }
}

TEST_CASE("fast multi-head attention requires a number of heads that divides its width, and weights of that width") {
  CHECK(multi_head_with("num_head", 4).empty());
  for (const std::int64_t heads : {0, 3, -2})
    CHECK_THAT(multi_head_with("num_head", heads), ContainsSubstring("expected a divisor of the width 8"));
  CHECK_THAT(multi_head_with("query", at::ones({2, 5, 6})), ContainsSubstring("queries are [2, 5, 6]"));
  CHECK_THAT(multi_head_with("value", at::ones({2, 9, 8})), ContainsSubstring("value is [2, 9, 8] and query"));
  CHECK_THAT(multi_head_with("proj_weight", at::ones({4, 8})), ContainsSubstring("[4, 8] and [8]; expected those"));
  CHECK_THAT(multi_head_with("proj_bias", at::ones({1})), ContainsSubstring("expected those of the width 8"));
  CHECK_THAT(multi_head_with("qkv_weight", at::ones({23, 8})), ContainsSubstring("its weights are [23, 8]"));
  CHECK_THAT(multi_head_with("qkv_bias", at::ones({2})), ContainsSubstring("expected those of the width 8"));
}
