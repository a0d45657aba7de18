#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using tensor_list = std::vector<at::Tensor>;

/// Weights of one layer in torch.nn's layout: 3 features, hidden size 6, `gates` gates.
tensor_list layer_weights(std::int64_t gates, std::int64_t features = 3) {
  return {at::ones({gates * 6, features}), at::ones({gates * 6, 6}), at::ones({gates * 6}), at::ones({gates * 6})};
}

/// Input of 5 steps of 2 rows.
named_arguments recurrent_call(const c10::IValue& states, const tensor_list& weights) {
  return {{"input", at::ones({5, 2, 3})},
          {"hx", states},
          {"params", weights},
          {"has_biases", true},
          {"num_layers", 1},
          {"dropout", 0.0},
          {"train", false},
          {"bidirectional", false},
          {"batch_first", false}};
}

tensor_list two_states(std::int64_t rows = 2, std::int64_t layers = 1) {
  return {at::ones({layers, rows, 6}), at::ones({layers, rows, 6})};
}

std::string lstm_with(const std::string& name, const c10::IValue& value) {
  return contract_error("aten::lstm.input", with_argument(recurrent_call(two_states(), layer_weights(4)), name, value));
}

tensor_list joined(tensor_list first, const tensor_list& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

} // namespace

TEST_CASE("recurrent layers with states and weights that fit their rows are accepted") {
  CHECK(contract_error("aten::lstm.input", recurrent_call(two_states(), layer_weights(4))).empty());
  CHECK(contract_error("aten::gru.input", recurrent_call(at::ones({1, 2, 6}), layer_weights(3))).empty());
  for (const auto* const name : {"aten::rnn_tanh.input", "aten::rnn_relu.input"})
    CHECK(contract_error(name, recurrent_call(at::ones({1, 2, 6}), layer_weights(1))).empty());
  auto deep = recurrent_call(two_states(2, 2), joined(layer_weights(4), layer_weights(4, 6)));
  CHECK(contract_error("aten::lstm.input", with_argument(deep, "num_layers", 2)).empty());
  auto both = recurrent_call(two_states(2, 2), joined(layer_weights(4), layer_weights(4)));
  CHECK(contract_error("aten::lstm.input", with_argument(both, "bidirectional", true)).empty());
  auto first = recurrent_call(two_states(5), layer_weights(4)); // 5 rows of 2 steps
  CHECK(contract_error("aten::lstm.input", with_argument(first, "batch_first", true)).empty());
  auto bare = recurrent_call(two_states(), {at::ones({24, 3}), at::ones({24, 6})});
  CHECK(contract_error("aten::lstm.input", with_argument(bare, "has_biases", false)).empty());
}

TEST_CASE("an LSTM with a projection has outputs of its width") {
  const tensor_list weights{at::ones({24, 3}), at::ones({24, 2}), at::ones({24}), at::ones({24}), at::ones({2, 6})};
  const tensor_list states{at::ones({1, 2, 2}), at::ones({1, 2, 6})};
  CHECK(contract_error("aten::lstm.input", recurrent_call(states, weights)).empty());
  auto errors = weights;
  errors[4] = at::ones({6, 2});
  CHECK_THAT(contract_error("aten::lstm.input", recurrent_call(states, errors)),
             ContainsSubstring("weight 4 is Float [6, 2]; expected Float [2, 6]"));
}

TEST_CASE("states of another number of rows are refused") {
  CHECK(lstm_with("hx", two_states(1)) ==
        "aten::lstm: state 0 is Float [1, 1, 6]; expected Float [1, 2, 6] for its rows");
  CHECK_THAT(lstm_with("hx", tensor_list{at::ones({1, 2, 6}), at::ones({1, 1, 6})}), ContainsSubstring("state 1 is"));
  CHECK_THAT(lstm_with("hx", tensor_list{at::ones({1, 2, 6})}), ContainsSubstring("it has 1 states"));
  CHECK_THAT(lstm_with("hx", tensor_list{at::ones({2, 6}), at::ones({2, 6})}), ContainsSubstring("of three axes"));
  CHECK_THAT(lstm_with("hx", tensor_list{at::ones({1, 2, 6}), at::ones({1, 2, 6}, at::kDouble)}),
             ContainsSubstring("state 1 is Double"));
  CHECK_THAT(contract_error("aten::gru.input", recurrent_call(at::ones({1, 1, 6}), layer_weights(3))),
             ContainsSubstring("aten::gru: state 0 is Float [1, 1, 6]"));
  CHECK_THAT(lstm_with("batch_first", true), ContainsSubstring("expected Float [1, 5, 6]"));
}

TEST_CASE("weights that are too few, too short or of another type are refused") {
  for (std::size_t i = 0; i < 4; ++i) {
    auto weights = layer_weights(4);
    weights[i] = weights[i].narrow(0, 0, 23);
    CHECK_THAT(lstm_with("params", weights), ContainsSubstring("weight " + std::to_string(i) + " is Float [23"));
    weights[i] = layer_weights(4)[i].to(at::kDouble);
    CHECK_THAT(lstm_with("params", weights), ContainsSubstring("weight " + std::to_string(i) + " is Double"));
  }
  CHECK_THAT(lstm_with("params", tensor_list{}), ContainsSubstring("it has 0 weights; expected 4"));
  CHECK_THAT(lstm_with("num_layers", 2), ContainsSubstring("state 0 is"));
  for (const std::int64_t layers : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40})
    CHECK_THAT(lstm_with("num_layers", layers), ContainsSubstring("expected 1 to 64"));
}

TEST_CASE("rows without steps, and packed rows with wrong sums, are refused") {
  CHECK_THAT(lstm_with("input", at::ones({0, 2, 3})), ContainsSubstring("its rows are [0, 2, 3]"));
  CHECK_THAT(lstm_with("input", at::ones({2, 3})), ContainsSubstring("its rows are [2, 3]"));
  const auto packed = [](const at::Tensor& batch_sizes, std::int64_t rows) {
    return contract_error("aten::lstm.data", {{"data", at::ones({5, 3})},
                                              {"batch_sizes", batch_sizes},
                                              {"hx", two_states(rows)},
                                              {"params", layer_weights(4)},
                                              {"has_biases", true},
                                              {"num_layers", 1},
                                              {"dropout", 0.0},
                                              {"train", false},
                                              {"bidirectional", false}});
  };
  const auto integers = [](std::vector<std::int64_t> numbers) { return at::tensor(numbers, at::kLong); };
  CHECK(packed(integers({3, 2}), 3).empty());
  CHECK_THAT(packed(integers({3, 2}), 2), ContainsSubstring("expected Float [1, 3, 6]"));
  CHECK_THAT(packed(integers({9}), 9), ContainsSubstring("has 9 at step 0"));
  CHECK_THAT(packed(integers({2, 3}), 2), ContainsSubstring("has 3 at step 1"));
  CHECK_THAT(packed(integers({3, -3, 5}), 3), ContainsSubstring("has -3 at step 1"));
  CHECK_THAT(packed(integers({2, 2}), 2), ContainsSubstring("leaves 1 of 5 packed rows out"));
  CHECK_THAT(packed(integers({}), 2), ContainsSubstring("batch_sizes [0]"));
  CHECK_THAT(packed(at::ones({2}), 2), ContainsSubstring("a list of integers"));
}
