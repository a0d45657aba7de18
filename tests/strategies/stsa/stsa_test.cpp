// STSA without actors: rounds of clients, folds and solves, compared with algebra.
#include "tests/strategies/stsa/stsa_run.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::stsa_case;

namespace {

/// Centralized ridge solution of all rows by singular value decomposition, [C, M], rounded to float32.
at::Tensor pooled_ridge(const at::Tensor& h, const at::Tensor& y, double ridge) {
  const auto [u, s, vh] = at::linalg_svd(h, false);
  return vh.t().mm((s / (s * s + ridge)).unsqueeze(1) * u.t().mm(y)).t().to(at::kFloat).to(at::kDouble);
}

} // namespace

TEST_CASE("the read-out equals centralized ridge regression for any split and order of clients", "[stsa]") {
  for (const std::int64_t clients : {1, 2, 7, 200})
    for (const std::uint64_t seed : {1, 2}) {
      INFO(clients << " clients, split " << seed);
      stsa_run run({}, clients);
      run.learn_all([&](std::uint32_t task) { return run.at_random(task, seed); });
      // float32 rounds each value by at most 6e-8 of it; equal doubles round equally except for ties.
      CHECK(relative(run.readout(), pooled_ridge(run.h(), stsa_run::y(), 3.5)) < 1e-8);
    }
}

TEST_CASE("sums over clients equal pooled ones to 1e-12 for any split", "[stsa]") {
  const auto sums = [](std::int64_t clients, const std::string& dummies) {
    stsa_run run({{"estimator", "estimated"}, {"dummies", dummies}}, clients, 1);
    const auto dealt = run.at_random(0, 4);
    auto total = at::zeros({classes, width}, at::kDouble), counts = at::zeros({classes}, at::kDouble);
    for (std::uint32_t c = 0; c < clients; ++c) {
      run.learn(0, dealt, {c});
      total += run.last_upload().at("sums").sum(0);
      counts += run.last_upload().at("counts").sum(0);
    }
    CHECK(counts.equal(at::full({classes}, 40.0, at::kDouble)));
    return total;
  };
  const stsa_run any({}, 1);
  const auto pooled = stsa_run::y().t().mm(any.h());
  for (const auto& [clients, dummies] : {std::pair{1, "1"}, {1, "7"}, {5, "1"}, {5, "3"}})
    CHECK(relative(sums(clients, dummies), pooled) < 1e-12);
}

TEST_CASE("after t tasks the state equals that of one task with all classes", "[stsa]") {
  stsa_run in_three({}, 4, 3), in_one({}, 4, 1);
  in_three.learn_all([&](std::uint32_t task) { return in_three.at_random(task, 8); });
  in_one.learn_all([&](std::uint32_t task) { return in_one.at_random(task, 9); });
  CHECK(relative(in_three.readout(), in_one.readout()) < 1e-8);
}

TEST_CASE("unseen classes, and classes without clients, have columns of zeros", "[stsa]") {
  stsa_run run({}, 2);
  auto dealt = run.at_random(0, 1);
  for (auto& rows : dealt)
    std::erase_if(rows, [](std::int64_t row) { return row % classes == 1; });
  run.learn(0, dealt, {0, 1});
  const auto w = run.readout();
  CHECK(w[0].norm().item<double>() > 0.0);
  CHECK(w[1].norm().item<double>() == 0.0);
  CHECK(w.narrow(0, 2, 4).norm().item<double>() == 0.0);
}

TEST_CASE("a client without rows, and an empty part, change nothing", "[stsa]") {
  for (const auto* estimator : {"exact", "estimated"}) {
    stsa_run with({{"estimator", estimator}, {"kappa", "nonempty"}, {"dummies", "50"}}, 3, 1);
    auto dealt = with.at_random(0, 1);
    dealt[1].insert(dealt[1].end(), dealt[2].begin(), dealt[2].end());
    dealt[2].clear();
    dealt[0].resize(9); // fewer rows than dummies: one part has all
    with.learn(0, dealt, {0, 1, 2});
    stsa_run without({{"estimator", estimator}, {"kappa", "nonempty"}, {"dummies", "50"}}, 3, 1);
    without.learn(0, dealt, {0, 1});
    CHECK(at::equal(with.readout(), without.readout()));
    CHECK(at::isfinite(with.readout()).all().item<bool>());
  }
}

TEST_CASE("late statistics that are kept count for the classes of their own task", "[stsa]") {
  stsa_run in_time({}, 3, 2), late({}, 3, 2), without({}, 3, 2);
  const auto first = in_time.at_random(0, 1), second = in_time.at_random(1, 1);
  in_time.learn(0, first, {0, 1, 2});
  late.learn(0, first, {0, 1});
  late.answer_late(2, first[2]);
  without.learn(0, first, {0, 1});
  for (auto* run : {&in_time, &late, &without})
    run->learn(1, second, {0, 1, 2});
  CHECK(relative(late.readout(), in_time.readout()) < 1e-8);
  CHECK(relative(without.readout(), in_time.readout()) > 1e-3);

  // Excluded: masked values, and estimates from all parts of a task together.
  for (const key_texts& keys : {key_texts{{"secure_aggregation", "true"}}, key_texts{{"estimator", "estimated"}}}) {
    stsa_run lost(keys, 3, 2), never(keys, 3, 2);
    lost.learn(0, first, {0, 1});
    lost.answer_late(2, first[2]);
    never.learn(0, first, {0, 1});
    for (auto* run : {&lost, &never})
      run->learn(1, second, {0, 1, 2});
    CHECK(at::equal(lost.readout(), never.readout()));
  }
}

TEST_CASE("one part per row makes the estimate exact; parts may come from a file", "[stsa]") {
  stsa_run exact({}, 1, 1), estimated({{"estimator", "estimated"}, {"dummies", "240"}, {"kappa", "nonempty"}}, 1, 1);
  const auto dealt = exact.at_random(0, 1);
  exact.learn(0, dealt, {0});
  estimated.learn(0, dealt, {0});
  CHECK(relative(estimated.readout(), exact.readout()) < 1e-6);
  stsa_run file({{"estimator", "estimated"}, {"dummies", "240"}, {"kappa", "nonempty"}, {"dummy_split", "file"}}, 1, 1);
  std::vector<std::int32_t> marks(240);
  for (std::size_t i = 0; i < marks.size(); ++i)
    marks[i] = static_cast<std::int32_t>(239 - i);
  file.learn(0, dealt, {0}, {marks});
  CHECK(relative(file.readout(), exact.readout()) < 1e-6);
  CHECK(file.last_upload().at("counts").sum(1).equal(at::ones({240}, at::kDouble)));
}

TEST_CASE("upload bytes are those of the paper", "[stsa]") {
  // Ten tasks of c classes. Estimates and solves return zeros, because wide ones would take minutes.
  const auto metered = [](const key_texts& keys, std::int64_t c, std::int64_t width) {
    const auto method = strategy_named("stsa");
    give_keys(*method, keys);
    auto net = model_named("linear", {1, 1, 2}, 10 * c);
    method->prepare(
        {.net = net, .initial = weights_only(at::zeros({net->size()})), .tasks = 10, .classes = 10 * c, .clients = 1});
    const auto server = method->make_server();
    job_channel channel;
    server_context ctx(channel);
    tensor_map zeros;
    zeros.put("gram", at::zeros({triangle_size(width)}, at::kDouble));
    for (std::uint32_t t = 0; t < 10; ++t) {
      const auto info = class_task(t, c);
      auto step = server->close_round(ctx, info);
      for (step.start(); !step.done();) {
        REQUIRE(channel.take_plan().size() == 1);
        zeros.put("readout", at::zeros({c * (t + 1), width}));
        outcomes answers;
        answers.emplace_back(work_output{compute_output{.out = std::make_shared<const tensor_map>(zeros)}});
        channel.answer(std::move(answers));
      }
      step.take();
    }
    return server->summary_metrics();
  };
  const auto whole = [&](const key_texts& keys, std::int64_t c, std::int64_t width) {
    return metered(keys, c, width).at("paper_upload_mib");
  };
  const key_texts vit{{"adaptation", "none"}, {"projection_width", "1250"}, {"dummies", "10"}};
  auto vit_estimated = vit;
  vit_estimated.emplace_back("estimator", "estimated");
  CHECK_THAT(whole(vit, 10, 1250), Catch::Matchers::WithinAbs(60.08, 0.005));
  const auto triangle = 4.0 * 10 * (1250.0 * 1251 / 2 + 1250 * 10) / 1024 / 1024; // 30.3
  CHECK_THAT(metered(vit, 10, 1250).at("paper_upload_triangle_mib"), Catch::Matchers::WithinAbs(triangle, 1e-9));
  CHECK_THAT(whole(vit_estimated, 10, 1250), Catch::Matchers::WithinAbs(4.772, 0.0005));
  const key_texts resnet{{"adaptation", "none"}, {"projection_width", "5000"}, {"dummies", "50"}};
  auto resnet_estimated = resnet;
  resnet_estimated.emplace_back("estimator", "estimated");
  CHECK_THAT(whole(resnet, 10, 5000), Catch::Matchers::WithinAbs(955.58, 0.005));
  CHECK_THAT(whole(resnet_estimated, 10, 5000), Catch::Matchers::WithinAbs(95.39, 0.005));
}

TEST_CASE("masks cancel: a secure sum differs from the plain one only by rounding to its grid", "[stsa]") {
  for (const std::int64_t clients : {1, 2, 5}) {
    stsa_run plain({}, clients), hidden({{"secure_aggregation", "true"}}, clients);
    plain.learn_all([&](std::uint32_t task) { return plain.at_random(task, 1); });
    hidden.learn_all([&](std::uint32_t task) { return hidden.at_random(task, 1); });
    CHECK(relative(hidden.readout(), plain.readout()) < 1e-6);
    CHECK(hidden.last_upload().at("gram").scalar_type() == at::kLong);
  }
  // A client that never responds leaves no mask.
  stsa_run plain({}, 5, 1), hidden({{"secure_aggregation", "true"}}, 5, 1);
  plain.learn(0, plain.at_random(0, 1), {0, 3, 1});
  hidden.learn(0, hidden.at_random(0, 1), {0, 3, 1});
  CHECK(relative(hidden.readout(), plain.readout()) < 1e-6);
}

TEST_CASE("noise of 0 changes nothing, and noise has the given deviation", "[stsa]") {
  const auto upload = [](const key_texts& keys) {
    stsa_run run(keys, 1, 1);
    run.learn(0, run.at_random(0, 1), {0});
    return run.last_upload();
  };
  const auto plain = upload({});
  CHECK(at::equal(upload({{"noise_on", "sums"}, {"noise_scale", "0"}}).at("gram"), plain.at("gram")));
  const auto noisy = upload({{"noise_on", "sums"}, {"noise_scale", "0.5"}, {"noise_std", "4"}});
  const auto difference = noisy.at("gram") - plain.at("gram");
  CHECK_THAT(difference.std().item<double>(), Catch::Matchers::WithinRel(2.0, 0.1)); // 900 draws
  const key_texts counted{{"estimator", "estimated"}, {"dummies", "4"}};
  auto noisy_counts = counted;
  noisy_counts.insert(noisy_counts.end(), {{"noise_on", "counts"}, {"noise_scale", "1"}, {"noise_std", "3"}});
  const auto counts = upload(noisy_counts).at("counts");
  CHECK(at::equal(counts, counts.trunc()));
  CHECK(counts.min().item<double>() >= 0.0);
  CHECK_FALSE(at::equal(counts, upload(counted).at("counts")));
  CHECK(at::equal(upload(noisy_counts).at("sums"), upload(counted).at("sums")));
}

TEST_CASE("the projection is the same for all widths: a smaller one has its first columns", "[stsa]") {
  const rng_key key{.seed = 5, .purpose = first_method_purpose};
  const auto wide = random_projection(key, 64, 300), narrow = random_projection(key, 64, 100);
  CHECK(at::equal(wide.narrow(1, 0, 100).contiguous(), narrow));
  CHECK_FALSE(at::equal(random_projection({.seed = 6, .purpose = first_method_purpose}, 64, 100), narrow));
  const double bound = 4.0 / std::sqrt(64.0 * 300.0);
  CHECK(std::abs(wide.mean().item<double>()) < bound);
  CHECK_THAT(wide.var().item<double>(), Catch::Matchers::WithinAbs(1.0, bound * 2));
  CHECK(at::equal(wide, wide.to(at::kFloat).to(at::kDouble)));
}

TEST_CASE("the learning rate schedule spans the adaptation", "[stsa]") {
  const auto method = strategy_named("stsa");
  give_keys(*method, {{"adaptation_rounds", "4"}});
  const auto net = model_named("linear", {1, 1, features}, classes);
  method->prepare({.net = net,
                   .initial = weights_only(initial_weights(*net, 1)),
                   .training = {.learning_rate = 1.0, .schedule = schedule_kind::cosine},
                   .classes = classes,
                   .clients = 1});
  const auto server = method->make_server();
  const std::vector<double> expected{1.0, (1 + std::sqrt(0.5)) / 2, 0.5, (1 - std::sqrt(0.5)) / 2};
  for (std::int64_t r = 0; r < 4; ++r) {
    const round_info info{.round_of_task = r, .rounds_of_task = 5, .seen_classes = {0, 2}, .current_classes = {0, 2}};
    auto in = server->open_round(info);
    in.info = info;
    client_round_runner run(
        *method, {.in = std::make_shared<const broadcast>(in), .samples = view_of(drawn_rows_of_classes(), {0, 1})});
    auto step = run.start();
    const auto job = std::get<train_job>(std::get<plan>(step).at(0));
    CHECK_THAT(job.options.learning_rate, Catch::Matchers::WithinAbs(expected[static_cast<std::size_t>(r)], 1e-12));
  }
}

TEST_CASE("invalid settings are refused with reasons", "[stsa]") {
  const auto error_text = [](const key_texts& keys, std::map<std::string, tensor_map> files = {}) {
    const auto method = strategy_named("stsa");
    give_keys(*method, {{"adaptation", "none"}});
    give_keys(*method, keys);
    std::string text;
    for (const auto& diagnostic : method->check({.net = model_named("identity", {1, 1, features}, classes),
                                  .memory = {.bytes = std::int64_t{24} << 30, .source = "free on this machine"},
                                  .files = std::move(files)}))
      text += diagnostic.where + ": " + diagnostic.text + "\n";
    return text;
  };
  CHECK(error_text({{"secure_aggregation", "true"}, {"estimator", "estimated"}})
            .starts_with("strategy.secure_aggregation: "));
  CHECK(error_text({{"noise_on", "both"}}).starts_with("strategy.noise_on: "));
  CHECK(error_text({{"projection_width", "100000"}}) ==
        "strategy.projection_width: strategy.projection_width = 100000: matrices of 100000 x 100000 numbers take about "
        "112 GiB, but 24.0 GiB are free on this machine; expected a smaller width\n");
  const auto file_with = [](const char* name, at::Tensor value) {
    std::map<std::string, tensor_map> files;
    files["projection_file"].put(name, std::move(value));
    return files;
  };
  CHECK(error_text({}, file_with("W_R", at::zeros({11, 4}))).find("found W_R of shape [11, 4]") != std::string::npos);
  CHECK(error_text({}, file_with("R", at::zeros({12, 4}))).find("found no tensor 'W_R'; expected W_R of shape [12,") !=
        std::string::npos);
  CHECK(error_text({}, file_with("W_R", at::zeros({12, 4}))).empty());
  const auto method = strategy_named("stsa");
  const auto staying = method->check(
      {.net = model_named("linear", {1, 1, features}, classes), .keep_task_share = 0.01, .shape = {1, 1, features}});
  REQUIRE(staying.size() == 1); // clients that keep their old task have no statistics of the new one
  CHECK(staying[0].where == "tasks.keep_task_share");
  CHECK(setup_error(*method, model_named("identity", {1, 1, 4}, 2)).find("no head") != std::string::npos);
}
