// Low-rank adapters and files of other programs, compared with timm, transformers and peft
// (tools/research/export/low_rank_reference.py).
#include "runtime/models/function.hpp"
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
using nlohmann::json;

// Axes: K models, B rows, P weights.

namespace {

const shape3 images{2, 12, 8};
model_keys small(model_keys more = {{"low_rank", "3"}}) {
  model_keys keys{{"patch", "4"}, {"width", "20"}, {"depth", "2"}, {"heads", "2"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}
const model_keys every_target{
    {"low_rank", "2"}, {"low_rank_alpha", "6"}, {"low_rank_targets", "query, value, projection, mlp"}};

bool is_low_rank(const parameter& entry) { return entry.name.find(".lora_") != std::string::npos; }

/// Initial weights with nonzero B, [P].
at::Tensor lively_weights(const model& net, std::uint64_t seed) {
  auto flat = initial_weights(net, seed);
  for (const auto& entry : net.layout())
    if (is_low_rank(entry))
      flat.narrow(0, entry.offset, entry.size).copy_(0.3F * drawn({entry.size}, seed + entry.offset));
  return flat;
}

/// One net of the reference: its weights, read from a file of the library, and its inputs.
class reference {
public:
  explicit reference(const json& record) : record_(record), classes_{0, record["classes"]} {
    model_keys keys;
    for (const auto& [key, value] : record["keys"].items())
      keys.emplace_back(key, value);
    auto kind = kind_with(record["model"], keys);
    if (record.contains("tokens")) {
      kind->set_tokens(31);
      const auto text = record["tokens"].get<std::vector<std::vector<float>>>();
      inputs_ = at::empty({1, std::ssize(text), 1, 1, std::ssize(text[0])});
      for (std::int64_t row = 0; row < inputs_.size(1); ++row)
        inputs_[0][row][0][0].copy_(floats(text[static_cast<std::size_t>(row)]));
    } else {
      auto shape = record["images"].get<std::vector<std::int64_t>>();
      shape.insert(shape.begin(), 1);
      inputs_ = at::empty(shape);
      const auto values = formula("input", inputs_.numel());
      for (std::size_t i = 0; i < values.size(); ++i)
        inputs_.mutable_data_ptr<float>()[i] = 2.0F * values[i];
    }
    net_ = kind->build({inputs_.size(2), inputs_.size(3), inputs_.size(4)}, classes_.high).value();
    tensor_map file;
    for (const auto& [name, shape] : record["tensors"].items())
      file.put(name, made_values(name, shape.get<std::vector<std::int64_t>>()));
    const auto flat = flat_parameters(*net_, file, "library.safetensors", nullptr);
    if (!flat)
      FAIL(flat.error()[0].text);
    weights_ = flat->unsqueeze(0);
  }

  void check_logits(const json& expected, double bound) const {
    const auto seen = net_->forward(weights_.clone(), inputs_, classes_, nullptr);
    for (std::int64_t row = 0; row < inputs_.size(1); ++row) {
      const auto i = static_cast<std::size_t>(row);
      const auto logits = floats(expected[i].get<std::vector<float>>());
      CHECK(largest_difference(seen.logits[0][row].contiguous(), logits) <
            bound * std::max(1.0F, logits.abs().max().item<float>()));
    }
  }
  void check_features() const {
    const auto seen = net_->forward(weights_.clone(), inputs_, classes_, nullptr);
    for (std::int64_t row = 0; row < inputs_.size(1); ++row)
      check_summary("features", seen.features[0][row], record_["features"][static_cast<std::size_t>(row)], 1e-5);
  }

  /// Gradients of the mean cross-entropy, [1, P]; zero for frozen parameters.
  [[nodiscard]] at::Tensor gradients() const {
    tape kept;
    const auto seen = net_->forward(weights_, inputs_, classes_, &kept);
    auto d_logits = at::softmax(seen.logits, 2);
    for (std::int64_t row = 0; row < inputs_.size(1); ++row)
      d_logits[0][row][row * 7 % classes_.high] -= 1.0;
    auto found = at::zeros_like(weights_);
    net_->backward(weights_, kept, classes_, d_logits / static_cast<double>(inputs_.size(1)), {}, {}, {found});
    return found;
  }
  void step(at::Tensor& velocity, double rate, double momentum) {
    velocity = momentum * velocity + gradients();
    weights_ -= rate * velocity;
  }

  /// Compares all trained parameters of `flat` [1, P] with the record; the others are zero, or keep their values.
  void check_trained(const at::Tensor& flat, const json& expected, double bound) const {
    std::size_t found = 0;
    for (const auto& entry : net_->layout())
      if (!entry.frozen) {
        REQUIRE(expected.contains(entry.name));
        check_summary(entry.name, as_in_files(flat[0], entry), expected[entry.name], bound, 1e-2);
        ++found;
      }
    CHECK(found == expected.size());
  }
  [[nodiscard]] const at::Tensor& weights() const { return weights_; }

private:
  json record_;
  class_range classes_;
  model_ref net_;
  at::Tensor inputs_, weights_; // [1, B, C, H, W] and [1, P]
};

/// Jobs of clients with these numbers of rows and different initial weights.
std::vector<job> clients_of(const model_ref& net, const std::vector<std::int64_t>& rows, training_options options) {
  const auto source = drawn_data(40, images, net->classes());
  options.classes = {0, net->classes()};
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = weights_only(lively_weights(*net, k)),
                                         .samples = rows_from(source, static_cast<std::int64_t>(k), rows[k]),
                                         .options = options,
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  return jobs;
}

std::vector<at::Tensor> trained_in_groups(const std::vector<job>& jobs, std::size_t width) {
  const auto runs = make_executor("cpu");
  std::vector<at::Tensor> weights;
  for (std::size_t first = 0; first < jobs.size(); first += width)
    for (const auto& output : runs->run(std::span(jobs).subspan(first, std::min(width, jobs.size() - first))))
      weights.push_back(weights_of(output).clone());
  return weights;
}

std::string refusal(const char* model, const model_keys& keys) {
  const auto kind = kind_with(model, keys);
  if (kind->reads_tokens())
    kind->set_tokens(9);
  const auto built = kind->reads_tokens() ? kind->build({1, 1, 6}, 5) : kind->build(images, 5);
  return built ? std::string{} : built.error();
}

} // namespace

TEST_CASE("files of timm, transformers and peft give the logits and features of these libraries", "[models][golden]") {
  at::set_num_threads(1);
  for (const auto* const name : {"timm_vit", "timm_clip", "vit", "clip", "timm_vit_lora", "vit_lora", "clip_lora",
                                 "bert_lora", "bert_lora_mlp"}) {
    INFO(name);
    const auto record = golden_record("peft/" + std::string(name));
    const reference net(record);
    net.check_logits(record["logits"], 1e-5);
    net.check_features();
  }
}

TEST_CASE("gradients and ten steps of training of low-rank adapters equal peft's", "[models][golden]") {
  at::set_num_threads(1);
  for (const auto* const name : {"timm_vit_lora", "vit_lora", "clip_lora", "bert_lora", "bert_lora_mlp"}) {
    INFO(name);
    const auto record = golden_record("peft/" + std::string(name));
    reference net(record);
    net.check_trained(net.gradients(), record["gradients"], 1e-5);
    const auto& steps = record["steps"];
    auto velocity = at::zeros_like(net.weights());
    for (std::int64_t i = 0; i < steps["count"]; ++i)
      net.step(velocity, steps["rate"], steps["momentum"]);
    net.check_trained(net.weights(), steps["trained"], 1e-5);
    net.check_logits(steps["logits"], 1e-5);
  }
}

TEST_CASE("low-rank adapters are bitwise the identity at the start, and only they and the head train", "[executor]") {
  at::set_num_threads(1);
  const auto with = net_of("vit", images, 5, small(every_target)), bare = net_of("vit", images, 5, small({}));
  const auto inputs = drawn({1, 4, images[0], images[1], images[2]}, 1);
  const auto expected = bare->forward(initial_weights(*bare, 3).unsqueeze(0), inputs, {0, 5}, nullptr);
  CHECK(same_bits(with->forward(initial_weights(*with, 3).unsqueeze(0), inputs, {0, 5}, nullptr).logits,
                  expected.logits));
  for (const auto& options :
       {training_options{.batch_rows = 4}, training_options{.batch_rows = 4, .momentum = 0.9, .weight_decay = 0.1},
        training_options{.optimizer = optimizer_kind::adamw, .weight_decay = 0.1}}) {
    const auto jobs = clients_of(with, {8}, options);
    const auto& start = std::get<train_job>(jobs[0].request).start->at(flat_weights);
    const auto end = trained_in_groups(jobs, 1)[0];
    for (const auto& entry : with->layout()) {
      INFO(entry.name);
      CHECK(entry.frozen == !(is_low_rank(entry) || entry.head));
      CHECK(same_bits(end.narrow(0, entry.offset, entry.size), start.narrow(0, entry.offset, entry.size)) ==
            entry.frozen);
    }
  }
}

TEST_CASE("clients of nets with low-rank adapters end with the same bits in groups of 1, 3 and 16", "[executor]") {
  at::set_num_threads(1);
  const std::vector<std::int64_t> rows{5, 3, 4, 0, 7, 1, 2, 6, 5, 5, 3, 4, 2, 7, 1, 5};
  for (const auto* const model : {"vit", "clip"})
    for (const auto& keys : {small(every_target), small({{"low_rank", "3"}, {"low_rank_dropout", "0.3"}})}) {
      const auto net = net_of(model, images, 5, keys);
      INFO(net->identity());
      const auto jobs = clients_of(net, rows, {.batch_rows = 4, .momentum = 0.9});
      const auto alone = trained_in_groups(jobs, 1), threes = trained_in_groups(jobs, 3),
                 together = trained_in_groups(jobs, 16);
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        INFO("client " << k);
        CHECK(same_bits(alone[k], threes[k]));
        CHECK(same_bits(alone[k], together[k]));
      }
    }
}

TEST_CASE("low-rank adapters as a function equal the kernel passes, with dropout", "[models]") {
  at::set_num_threads(1);
  for (const auto& keys : {small(every_target), small({{"low_rank", "3"}, {"low_rank_dropout", "0.3"}})}) {
    const auto net = net_of("vit", images, 5, keys);
    const auto weights = lively_weights(*net, 5).unsqueeze(0);
    const auto inputs = drawn({1, 4, images[0], images[1], images[2]}, 1);
    const std::vector<rng_key> streams(1, key_for({.seed = 1}, purpose::dropout_mask));
    const training_mode training{streams};
    const auto seen = net->forward(weights.clone(), inputs, {0, 5}, nullptr, &training);
    const auto function = net->differentiable(weights, inputs, {0, 5}, {.training = &training});
    CHECK(largest_difference(seen.logits, function.logits) < 1e-5);
  }
}

TEST_CASE("bad keys of low-rank adapters are refused with the key and the fix", "[models]") {
  CHECK(refusal("vit", small()).empty());
  CHECK_THAT(refusal("vit", small({{"low_rank", "21"}})),
             ContainsSubstring("model.low_rank = 21 is more than the 20 channels"));
  CHECK_THAT(refusal("vit", small({{"low_rank", "2"}, {"low_rank_targets", "query, valeu"}})),
             ContainsSubstring("model.low_rank_targets[1] = \"valeu\"") &&
                 ContainsSubstring("did you mean \"value\"?"));
  CHECK_THAT(refusal("vit", small({{"low_rank", "2"}, {"low_rank_targets", "mlp, mlp"}})), ContainsSubstring("twice"));
  CHECK_THAT(refusal("vit", small({{"low_rank", "2"}, {"low_rank_targets", "qkv, key"}})),
             ContainsSubstring("expected either \"qkv\""));
  CHECK_THAT(refusal("vit", small({{"low_rank", "2"}, {"adapter", "2"}})), ContainsSubstring("are both set"));
  CHECK_THAT(refusal("vit", small({{"low_rank_alpha", "2"}})),
             ContainsSubstring("model.low_rank_alpha has no effect") && ContainsSubstring("model.low_rank > 0"));
  CHECK_THAT(refusal("bert", {{"width", "8"}, {"low_rank", "2"}, {"low_rank_targets", "qkv"}}),
             ContainsSubstring("\"qkv\" is no linear layer of a block of bert"));
  CHECK_THAT(refusal("clip", small({{"low_rank_dropout", "0.1"}})), ContainsSubstring("model.low_rank_dropout"));
}

TEST_CASE("a pretrained file may lack the low-rank adapters, and all of them or none are read", "[models]") {
  const auto net = net_of("vit", images, 5, small());
  const auto flat = lively_weights(*net, 3), others = lively_weights(*net, 4);
  tensor_map body;
  for (const auto& [name, value] : named_parameters(*net, flat))
    if (name.find(".lora_") == std::string::npos)
      body.put(name, value);
  const auto read = flat_parameters(*net, body, "body.safetensors", &others);
  REQUIRE(read);
  for (const auto& entry : net->layout())
    CHECK(same_bits(read->narrow(0, entry.offset, entry.size),
                    (is_low_rank(entry) ? others : flat).narrow(0, entry.offset, entry.size)));
  body.put("base_model.model.blocks.0.attn.query.lora_A.weight", at::zeros({3, 20}));
  const auto some = flat_parameters(*net, body, "body.safetensors", &others);
  REQUIRE_FALSE(some);
  CHECK(some.error().size() == 7);
}
