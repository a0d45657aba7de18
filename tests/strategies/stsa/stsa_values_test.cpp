// Sums, uploads and masks of STSA, compared with matrix algebra and with draws that the test repeats.
#include "strategies/stsa/upload_privacy.hpp"
#include "tests/strategies/stsa/stsa_run.hpp"
#include <algorithm>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::stsa_case;
using Catch::Matchers::WithinRel;

namespace {

at::Tensor numbers(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

/// Standard normal values in stream order.
at::Tensor next_normals(rng_stream& draw, std::int64_t count) {
  auto made = at::empty({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i)
    made.mutable_data_ptr<double>()[i] = draw.normal();
  return made;
}

/// Upload of a client of one task under these keys, and the resulting read-out.
struct sent_alone {
  tensor_map upload;
  at::Tensor readout, gram, sums;
  explicit sent_alone(const key_texts& keys) {
    stsa_run run(keys, 1, 1);
    run.learn(0, run.at_random(0, 1), {0});
    upload = run.last_upload();
    readout = run.readout(), gram = run.gram(), sums = run.sums();
  }
};

bool equal_maps(const tensor_map& a, const tensor_map& b) {
  bool equal = a.size() == b.size();
  for (const auto& [name, value] : a)
    equal = equal && b.find(name) && at::equal(value, b.at(name));
  return equal;
}

} // namespace

TEST_CASE("G and C do not depend on the order of tasks, clients or samples", "[stsa]") {
  stsa_run run({}, 5), again({}, 5);
  const std::vector<std::uint32_t> ascending{0, 1, 2, 3, 4}, other{3, 0, 4, 2, 1};
  const auto whole_h = run.h(), whole_y = stsa_run::y();
  for (std::uint32_t t = 0; t < 3; ++t) {
    run.learn(t, run.at_random(t, 1), ascending);
    again.learn(t, run.at_random(t, 1), ascending);
  }
  CHECK(at::equal(run.gram(), again.gram())); // in one order they have equal bits
  CHECK(at::equal(run.sums(), again.sums()));
  CHECK(relative(run.gram(), whole_h.t().mm(whole_h)) < 1e-12);
  CHECK(relative(run.sums(), whole_y.t().mm(whole_h)) < 1e-12);

  stsa_run clients({}, 5), samples({}, 5);
  for (std::uint32_t t = 0; t < 3; ++t) {
    auto reversed = run.at_random(t, 1);
    clients.learn(t, reversed, other);
    for (auto& held : reversed)
      std::reverse(held.begin(), held.end());
    samples.learn(t, reversed, ascending);
  }
  for (const auto* moved : {&clients, &samples}) {
    CHECK(relative(moved->gram(), run.gram()) < 1e-12);
    CHECK(relative(moved->sums(), run.sums()) < 1e-12);
  }

  // The classes of the last task come first, and so on: label 0 is class 5.
  const std::vector<std::int32_t> label_of_class{5, 4, 3, 2, 1, 0};
  stsa_run tasks({}, 5, 3, label_of_class);
  for (std::uint32_t t = 0; t < 3; ++t)
    tasks.learn(t, tasks.at_random(t, 7), ascending);
  CHECK(relative(tasks.gram(), run.gram()) < 1e-12);
  CHECK(relative(tasks.sums().flip(0), run.sums()) < 1e-12);
}

TEST_CASE("splitting clients into dummies leaves G and C unchanged", "[stsa]") {
  for (const std::size_t parts : {2, 7, 80}) {
    stsa_run whole({}, 3), cut({}, 3 * static_cast<std::int64_t>(parts));
    for (std::uint32_t t = 0; t < 3; ++t) {
      const auto dealt = whole.at_random(t, 5);
      dealt_rows pieces(3 * parts);
      std::vector<std::uint32_t> order;
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < dealt[c].size(); ++i)
          pieces[c * parts + i % parts].push_back(dealt[c][i]);
      for (std::uint32_t c = 0; c < pieces.size(); ++c)
        order.push_back(c);
      whole.learn(t, dealt, {0, 1, 2});
      cut.learn(t, pieces, order);
    }
    CAPTURE(parts);
    CHECK(relative(cut.gram(), whole.gram()) < 1e-12);
    CHECK(relative(cut.sums(), whole.sums()) < 1e-12);
  }
}

TEST_CASE("noise of 0 changes no bit, and a noisy G is symmetric", "[stsa]") {
  const key_texts exact{}, estimated{{"estimator", "estimated"}, {"dummies", "7"}};
  for (const auto& base : {exact, estimated}) {
    const sent_alone plain(base);
    for (const std::string places : {"sums", "counts", "both"})
      for (const std::string nothing : {"noise_scale", "noise_std"}) {
        if (base.empty() && places != "sums")
          continue; // counts are not sent
        auto keys = base;
        keys.emplace_back("noise_on", places);
        keys.emplace_back(nothing, "0");
        const sent_alone silent(keys);
        CAPTURE(places, nothing);
        CHECK(equal_maps(silent.upload, plain.upload));
        CHECK(at::equal(silent.gram, plain.gram));
        CHECK(at::equal(silent.readout, plain.readout));
      }
  }
  const sent_alone plain(exact), noisy({{"noise_on", "sums"}, {"noise_scale", "1"}, {"noise_std", "2"}});
  const auto noise = noisy.gram - plain.gram;
  CHECK(at::equal(noisy.gram, noisy.gram.t()));
  CHECK((noise.triu(1).abs() > 0).sum().item<std::int64_t>() == width * (width - 1) / 2);
  const auto c = noisy.sums;
  const auto left = noisy.readout.mm(noisy.gram + 3.5 * at::eye(width, at::kDouble)) - c;
  CHECK((left.norm() / c.norm()).item<double>() < 1e-4); // W is float32
}

TEST_CASE("noise is drawn in name order and added to counts before truncation, to G and to C", "[stsa]") {
  const rng_key key{.seed = 9, .purpose = first_method_purpose, .client = {3}};
  tensor_map in;
  in.put("counts", numbers({0, 0, 0, 0, 1, 2, 3, 4}));
  in.put("gram", numbers({10, 20, 30}));
  in.put("sums", numbers({-1, 1}));
  const auto hidden_with = [&](privacy_options how) {
    how.noise = 3.0;
    how.noise_key = key;
    auto asked = in;
    put_privacy(asked, how);
    return hidden(asked);
  };

  rng_stream draw(key);
  const auto noisy_counts = in.at("counts") + 3.0 * next_normals(draw, 8);
  const auto noisy_gram = in.at("gram") + 3.0 * next_normals(draw, 3);
  const auto noisy_sums = in.at("sums") + 3.0 * next_normals(draw, 2);
  REQUIRE_FALSE(at::equal(noisy_counts.trunc(), noisy_counts.round()));
  REQUIRE(noisy_counts.min().item<double>() <= -1.0);
  const auto both = hidden_with({.on_sums = true, .on_counts = true});
  CHECK(both.size() == 3);
  CHECK(at::equal(both.at("counts"), noisy_counts.trunc().clamp_min(0)));
  CHECK(at::equal(both.at("gram"), noisy_gram));
  CHECK(at::equal(both.at("sums"), noisy_sums));

  const auto on_sums = hidden_with({.on_sums = true});
  rng_stream from_gram_on(key);
  CHECK(at::equal(on_sums.at("counts"), in.at("counts")));
  CHECK(at::equal(on_sums.at("gram"), in.at("gram") + 3.0 * next_normals(from_gram_on, 3)));
  CHECK(at::equal(on_sums.at("sums"), in.at("sums") + 3.0 * next_normals(from_gram_on, 2)));
  const auto on_counts = hidden_with({.on_counts = true});
  CHECK(at::equal(on_counts.at("gram"), in.at("gram")));
  CHECK(at::equal(on_counts.at("sums"), in.at("sums")));
}

TEST_CASE("noise on sums reaches C of both estimators, and noise on counts reaches neither", "[stsa]") {
  const key_texts exact{}, estimated{{"estimator", "estimated"}, {"dummies", "4"}};
  for (const auto& base : {exact, estimated}) {
    auto on_sums = base, on_counts = base;
    on_sums.insert(on_sums.end(), {{"noise_on", "sums"}, {"noise_scale", "0.5"}, {"noise_std", "4"}});
    const auto plain = sent_alone(base).upload, noisy = sent_alone(on_sums).upload;
    const auto noise = (noisy.at("sums") - plain.at("sums")).flatten();
    CHECK_THAT(noise.std().item<double>(), WithinRel(2.0, 0.2)); // 180 or 720 draws
    if (base.empty())
      continue;
    on_counts.insert(on_counts.end(), {{"noise_on", "counts"}, {"noise_scale", "1"}, {"noise_std", "4"}});
    CHECK(at::equal(noisy.at("counts"), plain.at("counts")));
    CHECK(at::equal(sent_alone(on_counts).upload.at("sums"), plain.at("sums")));
  }
}

TEST_CASE("gamma has the requested value, and is reported relative to the first task's G", "[stsa]") {
  stsa_run run({{"ridge", "12.5"}}, 2);
  run.learn(0, run.at_random(0, 1), {0, 1});
  const auto first = run.gram();
  const auto w = run.sums().mm(at::linalg_inv(first + 12.5 * at::eye(width, at::kDouble)));
  CHECK(relative(run.readout().narrow(0, 0, 2), w) < 1e-5);
  const auto expected = 12.5 / first.diagonal().mean().item<double>();
  CHECK_THAT(run.summary_metrics().at("ridge_relative"), WithinRel(expected, 1e-12));
  run.learn(1, run.at_random(1, 1), {0, 1});
  CHECK_THAT(run.summary_metrics().at("ridge_relative"), WithinRel(expected, 1e-12));
}

TEST_CASE("the read-out is linear or cosine, as the key selects", "[stsa]") {
  for (const auto& [text, kind] : {std::pair{"linear", readout_kind::linear}, {"cosine", readout_kind::cosine}}) {
    stsa_run run({{"readout", text}}, 1, 1);
    run.learn(0, run.at_random(0, 1), {0});
    CHECK(run.learned().kind == kind);
    CHECK((run.learned().projection.sizes() == at::IntArrayRef{features, width}));
  }
}

TEST_CASE("clients of the adaptation have equal weights, and one without rows has none", "[stsa]") {
  const auto method = strategy_named("stsa");
  CHECK(method->needs().defaults == "[strategy]\nweighting = \"uniform\"\n");
  give_keys(*method, {{"adaptation_rounds", "2"}, {"projection_width", "8"}});
  const auto net = model_named("linear", {1, 1, features}, classes);
  auto setup = setup_of_run(net, features, 1);
  setup.weighting = upload_weighting::uniform;
  setup.task_classes = {{0, classes}};
  method->prepare(setup);
  const auto server = method->make_server();
  const round_info info{.rounds_of_task = 3, .seen_classes = {0, classes}, .current_classes = {0, classes}};
  const auto device = make_executor("cpu");
  job_channel channel;
  server_context ctx(channel);
  CHECK(run_step(server->open_task(ctx, info), channel, *device).rounds == 3);
  (void)server->open_round(info);
  for (const auto& [value, held] : {std::pair{1.0, 1}, {4.0, 30}, {900.0, 0}})
    server->fold({.upload = weights_only(at::full({net->size()}, value)), .rows = held});
  run_step(server->close_round(ctx, info), channel, *device);
  CHECK(at::equal(server->predict().weights->at(flat_weights), at::full({net->size()}, 2.5)));
}

TEST_CASE("after an adaptation the net is sent to all clients once, then only to new ones", "[stsa]") {
  const auto method = strategy_named("stsa");
  give_keys(*method, {{"adaptation_rounds", "1"}, {"projection_width", "8"}});
  const auto net = model_named("linear", {1, 1, features}, classes);
  auto setup = setup_of_run(net, features, 3);
  setup.task_classes = {{0, 2}, {2, 4}, {4, 6}};
  method->prepare(setup);
  const auto server = method->make_server();
  const auto sent = [&](std::uint32_t task, std::int64_t round) {
    auto info = class_task(task, 2);
    info.round_of_task = round;
    const auto made = server->open_round(info);
    return std::pair{made.weights != nullptr, made.initial_payload != nullptr};
  };
  CHECK(sent(0, 0).first);
  CHECK(sent(0, 1) == std::pair{true, false});
  CHECK(sent(1, 0) == std::pair{false, true});
  CHECK(sent(2, 0) == std::pair{false, true});
}

TEST_CASE("a secure sum is exact to half a grid step per client", "[stsa]") {
  mask_ring ring{.key = {.seed = 3, .purpose = first_method_purpose}, .clients = 3};
  const std::vector<at::Tensor> values{numbers({0.3, -2.7, 1e6}), numbers({0.7, 0.1, -3e5}),
                                       numbers({1e-9, 5.55, 7.0})};
  auto sum = at::zeros({3}, at::kLong), plain = at::zeros({3}, at::kDouble);
  for (std::uint32_t c = 0; c < 3; ++c) {
    sum += add_masks(values[c], {c}, ring);
    plain += values[c];
  }
  const auto apart = (remove_masks(sum, {{0}, {1}, {2}}, ring) - plain).abs();
  CHECK(apart.max().item<double>() <= 3 * 0.5 / fixed_point_scale);
  const auto alone = remove_masks(add_masks(values[0], {0}, ring), {{0}}, ring); // the others never responded
  CHECK((alone - values[0]).abs().max().item<double>() <= 0.5 / fixed_point_scale);
}

TEST_CASE("presets have the numbers of the paper and of the official code", "[stsa]") {
  std::map<std::string, std::string> found;
  for (const auto& preset : strategy_named("stsa")->presets())
    found[preset.name] = preset.toml;
  const auto says = [&](const char* preset, const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
      CAPTURE(preset, line);
      CHECK(found.at(preset).find(line + "\n") != std::string::npos);
    }
  };
  const std::vector<std::string> shared{"epochs = 2", "batch = 128", "schedule = \"cosine\"", "momentum = 0.9",
                                        "weight_decay = 5e-4"};
  const std::vector<std::string> residual{"adaptation_rounds = 100", "projection_width = 5000", "ridge = 1e4",
                                          "dummies = 50", "learning_rate = 0.04"};
  for (const auto* preset : {"paper", "paper-vit", "official"})
    says(preset, shared);
  for (const auto* preset : {"paper", "official"})
    says(preset, residual);
  says("paper-vit",
       {"adaptation_rounds = 10", "projection_width = 1250", "ridge = 1e6", "dummies = 10", "learning_rate = 0.2"});
  says("paper", {"readout = \"linear\"", "kappa = \"total\"", "clamp_b = false"});
  says("official", {"readout = \"cosine\"", "kappa = \"total\"", "clamp_b = true"});
}
