// The pipeline between a method's halves: client steps, error feedback, noise, rules and attackers, against float64
// formulas.
#include "runtime/method/aggregated_server.hpp"
#include "runtime/method/update_steps.hpp"
#include "runtime/method/upload_pipeline.hpp"
#include "tests/support/method_driver.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

const std::vector<double> learned{3.0, -4.0, 0.0, 1.0};

/// A method whose clients upload w + `learned` and remember how often they trained, and whose server averages.
class adding_method final : public strategy {
public:
  explicit adding_method(upload_content content = upload_content::weights) : content_(content) {}
  upload_content uploads() const override { return content_; }
  method_needs needs() const override { return {.upload_size_known = true}; }
  void prepare(const method_setup&) override {}
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    CHECK_FALSE(ctx.memory().find(upload_error_name));
    const auto* const before = ctx.memory().find("rounds");
    auto memory = std::make_shared<tensor_map>();
    memory->put("rounds", before ? *before + 1 : at::ones({1}));
    client_result result{.upload = weights_only(in.weights->at(flat_weights) + at::tensor(learned).to(at::kFloat)),
                         .memory = memory,
                         .rows = 1};
    co_return result;
  }
  std::unique_ptr<server_half> make_server() const override;

private:
  upload_content content_;
};

class mean_server final : public server_half {
public:
  broadcast open_round(const round_info&) override { return {.weights = weights_only(weights_)}; }
  void fold(const delivery& in) override {
    sum_ += in.upload->at(flat_weights).to(at::kDouble);
    ++count_;
  }
  task<void> close_round(server_context&, const round_info&) override {
    weights_ = (sum_ / count_).to(at::kFloat);
    sum_ = at::zeros({4}, at::kDouble);
    count_ = 0.0;
    co_return;
  }
  predictor predict() const override { return {.weights = weights_only(weights_)}; }
  void persist(archive& state) override { state(weights_)(sum_)(count_); }

private:
  at::Tensor weights_ = at::zeros({4}), sum_ = at::zeros({4}, at::kDouble);
  double count_ = 0.0;
};

std::unique_ptr<server_half> adding_method::make_server() const { return std::make_unique<mean_server>(); }

scenario settings_with(const uploads_section& uploads) {
  scenario settings;
  settings.seed = 7;
  settings.clients.count = 5;
  settings.rounds.cohort = 4;
  settings.uploads = uploads;
  return settings;
}

upload_pipeline pipeline_of(const scenario& settings) { return {std::make_shared<adding_method>(), settings, {}}; }

client_result round_of(const strategy& method, std::uint32_t client, memory_ref memory = nullptr,
                       std::uint32_t visit = 0) {
  const broadcast sent{.weights = weights_only(at::zeros({4}))};
  client_round_runner run(method, {.client = {client},
                                   .in = std::make_shared<const broadcast>(sent),
                                   .memory = std::move(memory),
                                   .seed = 7,
                                   .visit = visit});
  return std::get<client_result>(run.start());
}

std::vector<double> values_of(const tensors_ref& tensors, const char* name = flat_weights) {
  const auto values = tensors->at(name).to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

rng_key client_key(upload_purpose purpose_id, std::uint32_t client, std::uint32_t visit = 0) {
  return {.seed = 7, .purpose = static_cast<std::uint32_t>(purpose_id), .client = {client}, .visit = visit};
}

/// Model after one round with the uploads of these clients.
std::vector<double> model_after(server_half& server, const strategy& method, const std::vector<std::uint32_t>& clients,
                                std::uint32_t round = 0) {
  const round_info info{.round = {round}};
  const auto sent = std::make_shared<const broadcast>(server.open_round(info));
  for (const auto client : clients) {
    client_round_runner run(method, {.client = {client}, .in = sent, .seed = 7});
    auto result = std::get<client_result>(run.start());
    server.fold({.from = {client}, .started_from = info.round, .upload = result.upload, .rows = result.rows});
  }
  job_channel channel;
  server_context ctx(channel);
  auto closing = server.close_round(ctx, info);
  closing.start();
  REQUIRE(closing.done());
  return values_of(server.predict().weights);
}

} // namespace

TEST_CASE("a clipped upload has the float64 value w + u min(1, S / |u|)") {
  const auto method = pipeline_of(settings_with({.clip_norm = 2.0}));
  const auto values = values_of(round_of(method, 0).upload);
  const auto norm = std::sqrt(26.0);
  for (std::size_t i = 0; i < learned.size(); ++i)
    CHECK(values[i] == static_cast<float>(learned[i] * 2.0 / norm));
  CHECK(values_of(round_of(pipeline_of(settings_with({.clip_norm = 6.0})), 0).upload) == learned);
}

// References for u = [3, -4, 0, 1] and S = 2: pfl 0.6.0, GaussianMechanism(2.0, 0.5).constrain_sensitivity(), and flwr
// 1.42.0, compute_clip_model_update(), give the same float64 numbers. Both add noise of deviation z S to the sum of a
// cohort: pfl's get_noise_stddev(6.0, 0.5) is 3, and flwr's compute_stdv(0.5, 6.0, 4) is 3 / 4 for the mean of four.
TEST_CASE("a clipped upload equals that of pfl-research and of Flower") {
  const auto values = values_of(round_of(pipeline_of(settings_with({.clip_norm = 2.0})), 0).upload);
  const std::vector<double> reference{1.1766968108291043, -1.5689290811054724, 0.0, 0.3922322702763681};
  for (std::size_t i = 0; i < reference.size(); ++i)
    CHECK(values[i] == Approx(reference[i]).epsilon(1e-7));
}

TEST_CASE("local noise is z S N(0, 1) from the client's key") {
  const auto method =
      pipeline_of(settings_with({.clip_norm = 6.0, .noise_multiplier = 0.5, .noise = noise_place::client}));
  for (const std::uint32_t visit : {0u, 1u}) {
    const auto values = values_of(round_of(method, 3, nullptr, visit).upload);
    rng_stream draw(client_key(upload_purpose::client_noise, 3, visit));
    for (std::size_t i = 0; i < learned.size(); ++i)
      CHECK(values[i] == static_cast<float>(learned[i] + 3.0 * draw.normal()));
  }
}

TEST_CASE("error feedback sends what was left out, and keeps the method's own memory") {
  const auto method = pipeline_of(settings_with({.top_k = 0.25, .error_feedback = true}));
  const auto first = round_of(method, 0);
  CHECK(values_of(first.upload) == std::vector<double>{0.0, -4.0, 0.0, 0.0});
  CHECK(values_of(first.memory, upload_error_name) == std::vector<double>{3.0, 0.0, 0.0, 1.0});
  const auto second = round_of(method, 0, first.memory);
  CHECK(values_of(second.upload) == std::vector<double>{6.0, 0.0, 0.0, 0.0}); // 3 + 3, -4, 0, 1 + 1
  CHECK(values_of(second.memory, upload_error_name) == std::vector<double>{0.0, -4.0, 0.0, 2.0});
  CHECK(values_of(second.memory, "rounds") == std::vector<double>{2.0});
}

TEST_CASE("compression without feedback forgets what it leaves out") {
  const auto result = round_of(pipeline_of(settings_with({.quantise = 2, .rounding = rounding_kind::nearest})), 0);
  CHECK(values_of(result.upload) == std::vector<double>{4.0, -4.0, 0.0, 0.0}); // step 4
  CHECK_FALSE(result.memory->find(upload_error_name));
}

TEST_CASE("server noise is added once, and an absent client counts as an update of 0") {
  const auto method = pipeline_of(settings_with({.clip_norm = 6.0, .noise_multiplier = 0.5}));
  const auto server = method.make_server();
  const auto model = model_after(*server, method, {0, 1, 4}); // three of a cohort of four
  rng_stream draw(tree_node_key(7, 0, 0));
  for (std::size_t i = 0; i < learned.size(); ++i)
    CHECK(model[i] == Approx((3.0 * learned[i] + 3.0 * draw.normal()) / 4.0).epsilon(1e-6));
}

TEST_CASE("tree noise of t rounds is the sum of the nodes of t's bits") {
  const auto method =
      pipeline_of(settings_with({.clip_norm = 6.0, .noise_multiplier = 1.0, .noise = noise_place::tree}));
  const auto server = method.make_server();
  std::vector<double> model;
  for (std::uint32_t round = 0; round < 7; ++round)
    model = model_after(*server, method, {0, 1, 2, 3}, round);
  std::vector<double> expected(4);
  for (std::size_t i = 0; i < 4; ++i)
    expected[i] = 7.0 * learned[i];
  // rounds 1 to 4, 5 to 6 and 7
  for (const auto& [level, index] : std::vector<std::pair<std::uint32_t, std::uint64_t>>{{2, 0}, {1, 2}, {0, 6}}) {
    rng_stream draw(tree_node_key(7, level, index));
    for (auto& value : expected)
      value += 6.0 * draw.normal() / 4.0;
  }
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(model[i] == Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("a rule replaces the weights of all uploads of the round") {
  auto settings = settings_with({});
  settings.aggregation.rule = aggregation_rule::median;
  const auto server = pipeline_of(settings).make_server();
  const auto info = round_info{};
  static_cast<void>(server->open_round(info));
  for (const float value : {1.0f, 100.0f, 2.0f})
    server->fold({.upload = weights_only(at::full({4}, value)), .rows = 3});
  job_channel channel;
  server_context ctx(channel);
  auto closing = server->close_round(ctx, info);
  closing.start();
  CHECK(values_of(server->predict().weights) == std::vector<double>(4, 2.0));
}

TEST_CASE("attackers are a share of the clients and send the scaled negative update, or noise") {
  auto settings = settings_with({});
  settings.clients.attack = attack_kind::sign_flip;
  settings.clients.attackers = 0.4;
  settings.clients.attack_scale = 2.0;
  const auto attackers = attackers_of(settings);
  REQUIRE(attackers.size() == 2);
  const auto method = pipeline_of(settings);
  for (std::uint32_t client = 0; client < 5; ++client) {
    const bool attacks = std::find(attackers.begin(), attackers.end(), client) != attackers.end();
    CHECK(values_of(round_of(method, client).upload) ==
          (attacks ? std::vector<double>{-6.0, 8.0, 0.0, -2.0} : learned));
  }
  settings.clients.attack = attack_kind::noise;
  rng_stream draw(client_key(upload_purpose::attack_noise, attackers[0]));
  for (const auto value : values_of(round_of(pipeline_of(settings), attackers[0]).upload))
    CHECK(value == static_cast<float>(2.0 * draw.normal()));
}

TEST_CASE("upload_size_known is kept unless [uploads] changes the size of an upload") {
  CHECK(pipeline_of(settings_with({.clip_norm = 1.0})).needs().upload_size_known);
  CHECK_FALSE(pipeline_of(settings_with({.top_k = 0.5})).needs().upload_size_known);
}
