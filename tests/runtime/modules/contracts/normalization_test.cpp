#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("statistics and weights of a normalization need one value per channel") {
  const named_arguments plain{{"input", at::ones({2, 4, 9, 9})},
                              {"running_mean", at::zeros({4})},
                              {"running_var", at::ones({4})},
                              {"weight", at::ones({4})}};
  for (const auto* const name :
       {"aten::batch_norm", "aten::instance_norm", "aten::_native_batch_norm_legit_no_training"}) {
    CHECK(contract_error(name, plain).empty());
    for (const auto* const argument : {"weight", "bias", "running_mean", "running_var"}) {
      CHECK_THAT(contract_error(name, with_argument(plain, argument, at::ones({1}))),
                 ContainsSubstring(std::string(argument) + " is [1] for rows [2, 4, 9, 9]; expected [4]"));
      CHECK_THAT(contract_error(name, with_argument(plain, argument, at::ones({4, 1}))),
                 ContainsSubstring("is [4, 1]"));
    }
  }
  CHECK(contract_error("aten::batch_norm", {{"input", at::ones({2, 4, 9, 9})}}).empty());
  CHECK_THAT(contract_error("aten::batch_norm", {{"input", at::ones({2, 4, 9, 9})}, {"running_mean", at::zeros({4})}}),
             ContainsSubstring("expected both or none"));
  CHECK_THAT(contract_error("aten::batch_norm", {{"input", at::ones({4})}}), ContainsSubstring("expected [B, C, ...]"));
}
