// Language models: bert with model.causal, compared with torch.nn.TransformerEncoder under a causal mask
// (tools/research/export/causal_reference.py), and trained in groups of any width.
#include "runtime/models/row_wise_model.hpp"
#include "runtime/storage/parameters.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/golden.hpp"
#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

// Axes: K models, B rows, T tokens, V tokens of the vocabulary.

namespace {

constexpr std::int64_t vocabulary = 7, tokens = 5;

model_ref causal_net(model_keys keys, std::int64_t known, std::int64_t length, std::int64_t classes = 3) {
  keys.insert(keys.end(), {"causal", "true"});
  auto kind = kind_with("bert", keys);
  kind->set_tokens(known);
  return kind->build({1, 1, length}, classes).value();
}
model_ref small_net(model_keys more = {}) {
  model_keys keys{{"width", "8"}, {"depth", "2"}, {"heads", "2"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return causal_net(keys, vocabulary, tokens);
}

/// Texts with labels that the net's classes do not cover.
std::shared_ptr<dataset> texts_of(const at::Tensor& rows) {
  auto made = std::make_shared<dataset>();
  made->vectors = rows.to(at::kFloat).contiguous();
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    made->labels.push_back(static_cast<std::int32_t>(100 + row));
  made->transforms.resize(1);
  return made;
}
std::shared_ptr<dataset> drawn_texts(std::int64_t count) {
  auto rows = at::empty({count, tokens}, at::kFloat);
  rng_stream draw({.seed = 3, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < rows.numel(); ++i)
    rows.mutable_data_ptr<float>()[i] = static_cast<float>(draw.below(vocabulary));
  return texts_of(rows);
}

job_outcome result_of(work request) {
  const job one{.id = {{1}, 0, 0}, .request = std::move(request)};
  return make_executor("cpu")->run(std::span(&one, 1))[0];
}
std::string error_of(work request) {
  const auto outcome = result_of(std::move(request));
  const auto* const error = std::get_if<std::string>(&outcome);
  return error ? *error : "";
}

train_job training(const model_ref& net, sample_view samples, training_options options = {}) {
  options.classes = {0, 200}; // classes of the data set
  return {.net = net,
          .start = weights_only(initial_weights(*net, 1) + 0.1 * drawn({net->size()}, 5)),
          .samples = std::move(samples),
          .options = std::move(options)};
}

} // namespace

TEST_CASE("a causal net equals torch's transformer: scores, token loss, perplexity, gradients", "[golden]") {
  at::set_num_threads(1);
  const auto record = golden_record("torch/causal");
  const auto text = record["tokens"].get<std::vector<std::vector<float>>>();
  const auto length = std::ssize(text[0]), count = std::ssize(text);
  const auto net =
      causal_net({{"width", "24"}, {"depth", "2"}, {"heads", "3"}, {"mlp", "40"}}, record["vocabulary"], length);
  CHECK(positions_of(*net) == length);
  CHECK(net->size() == record["parameters"]);
  auto flat = at::zeros({net->size()});
  for (const auto& parameter : net->layout())
    put_as_in_files(flat, parameter, made_values(parameter.name, parameter.shape));
  auto rows = at::empty({count, length});
  for (std::int64_t row = 0; row < count; ++row)
    rows[row].copy_(floats(text[static_cast<std::size_t>(row)]));

  const auto seen = net->forward(flat.unsqueeze(0), rows.view({1, count, 1, 1, length}), {0, 31}, nullptr);
  REQUIRE(seen.logits.sizes() == at::IntArrayRef{1, count * length, 31});
  for (std::int64_t row = 0; row < count; ++row)
    check_summary("logits", seen.logits[0].narrow(0, row * length, length),
                  record["logits"][static_cast<std::size_t>(row)], 1e-5);
  const auto source = texts_of(rows);
  auto asked = training(net, rows_from(source, 0, count), {.batch_rows = count, .result = training_result::gradient});
  asked.start = weights_only(flat);
  const auto trained = result_of(asked);
  REQUIRE(std::holds_alternative<work_output>(trained));
  const auto& output = std::get<train_output>(std::get<work_output>(trained));
  CHECK(std::abs(output.loss_mean - record["loss"].get<double>()) < 1e-5);
  for (const auto& parameter : net->layout())
    check_summary(parameter.name, as_in_files(output.gradients, parameter), record["gradients"][parameter.name], 1e-5,
                  1e-2);

  const auto tested = result_of(evaluate_job{.learned = {.net = net, .weights = weights_only(flat)},
                                             .samples = rows_from(source, 0, count),
                                             .mask = {0, 200}});
  const auto& sums = std::get<evaluate_output>(std::get<work_output>(tested));
  CHECK(sums.rows == count * (length - 1));
  CHECK(sums.correct == record["correct"]);
  const auto perplexity = std::exp(sums.loss_sum / static_cast<double>(sums.rows));
  CHECK(std::abs(perplexity - record["perplexity"].get<double>()) < 1e-5 * perplexity);
}

TEST_CASE("a causal net as a function equals its kernels, and no score depends on later tokens", "[models]") {
  at::set_num_threads(1);
  const auto net = small_net();
  const auto weights =
      at::stack({initial_weights(*net, 1), initial_weights(*net, 2)}) + 0.1 * drawn({2, net->size()}, 4);
  auto inputs = drawn_texts(6)->vectors.view({2, 3, 1, 1, tokens}).clone();
  const auto logits = net->forward(weights, inputs, {0, vocabulary}, nullptr).logits.clone();
  CHECK(largest_difference(net->differentiable(weights, inputs, {0, vocabulary}, {}).logits.contiguous(), logits) <
        1e-5);
  const auto before = logits.view({2, 3, tokens, vocabulary});
  inputs.narrow(4, 3, 2).fill_(1.0F); // the last two tokens
  const auto after = net->forward(weights, inputs, {0, vocabulary}, nullptr).logits.view_as(before);
  CHECK(same_bits(after.narrow(2, 0, 3).contiguous(), before.narrow(2, 0, 3).contiguous()));
  CHECK_FALSE(same_bits(after.narrow(2, 4, 1).contiguous(), before.narrow(2, 4, 1).contiguous()));
}

TEST_CASE("causal nets train to the same bits alone and in groups, with and without low-rank adapters", "[executor]") {
  at::set_num_threads(1);
  const auto source = drawn_texts(30);
  for (const auto& keys : {model_keys{}, model_keys{{"low_rank", "2"}, {"dropout", "0.2"}}})
    for (const auto& options : {training_options{.epochs = 2, .batch_rows = 4},
                                training_options{.optimizer = optimizer_kind::adam, .batch_rows = 4}}) {
      std::vector<job> jobs;
      for (std::uint32_t k = 0; k < 4; ++k) {
        auto made = training(small_net(keys), rows_from(source, k, 7 - 2 * k % 4), options);
        made.stream = {.seed = 1, .client = {k}};
        jobs.push_back({.id = {{k}, 0, 0}, .request = std::move(made)});
      }
      const auto runs = make_executor("cpu");
      const auto together = runs->run(jobs);
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        const auto alone = runs->run(std::span(jobs).subspan(k, 1));
        CHECK(same_bits(weights_of(alone[0]), weights_of(together[k])));
        CHECK_FALSE(same_bits(weights_of(alone[0]), std::get<train_job>(jobs[k].request).start->at(flat_weights)));
      }
    }
}

TEST_CASE("replayed rows of a causal net count as in one batch with the same weights", "[executor]") {
  at::set_num_threads(1);
  const auto source = drawn_texts(8);
  const auto net = small_net();
  auto replaying = training(net, rows_from(source, 0, 4), {.batch_rows = 4, .in_order = true, .replay_rows = 4});
  replaying.replay.samples = rows_from(source, 4, 4);
  auto whole = training(net, rows_from(source, 0, 8), {.batch_rows = 8, .learning_rate = 0.1, .in_order = true});
  for (const auto by : {replay_pass::joint, replay_pass::separate}) {
    replaying.options.replay_by = by; // the sum of two means is twice the mean of all rows
    CHECK(largest_difference(weights_of(result_of(replaying)), weights_of(result_of(whole))) < 1e-6);
  }
}

TEST_CASE("causal nets refuse padding, short rows, teachers and class scores with a reason") {
  const auto error = [](model_keys keys, std::int64_t length) {
    keys.emplace_back("causal", "true");
    auto kind = kind_with("bert", keys);
    kind->set_tokens(vocabulary);
    return kind->build({1, 1, length}, 3).error();
  };
  CHECK_THAT(error({{"padding", "0"}}, tokens),
             ContainsSubstring("model.padding = 0") && ContainsSubstring("expected -1"));
  CHECK_THAT(error({}, 1), ContainsSubstring("rows have 1; expected at least 2"));
  auto kind = kind_with("bert", {{"causal", "true"}});
  kind->set_tokens(vocabulary);
  kind->set_head(head_kind::cosine);
  CHECK_THAT(kind->build({1, 1, tokens}, 3).error(), ContainsSubstring("has a linear head for tokens"));

  const auto net = small_net();
  auto taught = training(net, rows_from(drawn_texts(4), 0, 4));
  taught.add_teacher(taught.start, {.classes = {0, 3}});
  CHECK_THAT(error_of(taught), ContainsSubstring("trains with teachers; expected model.causal = false"));
  CHECK_THAT(error_of(extract_job{.net = net, .weights = taught.start, .samples = taught.samples}),
             ContainsSubstring("no class scores to extract"));
}
