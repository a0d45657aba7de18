// DyTox: its losses by hand and compared with the official code, trained parts per stage, and features for herding.
#include "strategies/shared/exemplar_selection.hpp"
#include "strategies/shared/row_losses.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/rehearsing_client.hpp"
#include "tests/support/small_convit.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

rehearsing_client token_client(const std::vector<std::int64_t>& sizes, key_list keys = {}) {
  keys.pairs.emplace_back("memory", "8");
  return {"dytox", sizes, keys, row_convit(sizes)};
}
const convit& net_of_client(const rehearsing_client& client) { return dynamic_cast<const convit&>(*client.setup.net); }

/// Outputs of the divergence head in the layout of the net: those of the largest task.
at::Tensor shown_map(const at::Tensor& outputs, std::int64_t largest) {
  return at::constant_pad_nd(outputs, {0, largest + 1 - outputs.size(1)}).unsqueeze(-1).unsqueeze(-1);
}
at::Tensor part(const rehearsing_client& client, const at::Tensor& flat, const std::string& name) {
  for (const auto& entry : client.setup.net->layout())
    if (entry.name == name)
      return as_in_files(flat, entry);
  FAIL("no parameter is called " << name);
  return {};
}
at::Tensor weights_after(const rehearsing_client& client, std::uint32_t task, bool last_round) {
  return client.round(client.work(client.sent(task, last_round), client.rows_of(0, task, 5))).upload->at(flat_weights);
}

/// Names of the script's parameters; head rows are named by task.
std::set<std::string> fixed_parts(const rehearsing_client& client, const train_job& job) {
  const auto& net = *client.setup.net;
  const auto chosen = trained_parameters(net, job.options.trained, job.options.layers);
  std::set<std::string> names;
  for (std::size_t i = 0; i < net.layout().size(); ++i) {
    const auto& entry = net.layout()[i];
    if (!chosen.changes(net, i))
      names.insert(entry.name);
    if (entry.head && job.options.held_classes > 0)
      names.insert(entry.name + ".0");
  }
  return names;
}
std::vector<train_job> trainings(const rehearsing_client& client, const broadcast& in, std::vector<std::int64_t> rows) {
  return jobs_of_kind<train_job>(jobs_of_round(*client.method, *client.device, client.work(in, std::move(rows))));
}

} // namespace

TEST_CASE("DyTox's losses equal the official code's", "[dytox]") {
  const auto record = golden_record("dytox/official"), theirs = record["losses"];
  const auto client = token_client({3, 2});
  const rehearsed_step step{.logits = formula_tensor("dytox.logits", {6, 5}, 2.0),
                            .labels = labels_of(record["labels"]),
                            .teacher = formula_tensor("dytox.teacher", {6, 3}, 2.0),
                            .maps = {shown_map(formula_tensor("dytox.div", {6, 3}, 2.0), 3)},
                            .old_maps = {}};
  const auto ours = step.loss_of(*client.training(1).objective);
  REQUIRE(ours.terms.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK_THAT(ours.terms[i].value.item<double>(), WithinAbs(theirs["terms"][i].get<double>(), 1e-6));
  CHECK(largest_difference_of(ours.d_logits, listed_tensor(theirs["d_logits"], {6, 5})) < 1e-7);
  const auto gradients = ours.d_maps.at(0).flatten(2)[0];
  CHECK(largest_difference_of(gradients.narrow(1, 0, 3).contiguous(), listed_tensor(theirs["d_div"], {6, 3})) < 1e-7);
  CHECK(gradients.narrow(1, 3, 1).abs().max().item<float>() == 0.0F);
}

TEST_CASE("the method builds its net with a divergence head unless its weight is 0", "[dytox]") {
  const auto maps_with = [](const std::string& method, const char* weight) {
    const auto built = strategy_named(method);
    if (weight)
      give_keys(*built, {{"divergence", weight}});
    const auto kind = kind_with("convit", {{"width", "8"}, {"heads", "2"}, {"depth", "1"}});
    return built->build_net(*kind, {3, 8, 8}, 4).value()->maps();
  };
  CHECK(maps_with("dytox", "0.1") == std::vector<std::string>{"divergence"});
  CHECK(maps_with("dytox", "0").empty());
  CHECK(maps_with("fedavg", nullptr).empty());
}

TEST_CASE("distillation gains weight over labels as the share of old classes grows", "[dytox]") {
  const auto client = token_client({2, 2, 2});
  const auto value = [&](std::uint32_t task) {
    const auto opened = 2 * static_cast<std::int64_t>(task + 1);
    const rehearsed_step step{.logits = at::zeros({4, opened}),
                              .labels = at::tensor({0, 1, 2, 3}, at::kLong),
                              .teacher = at::full({4, opened - 2}, 0.7F),
                              .maps = {at::zeros({4, 3, 1, 1})},
                              .old_maps = {}};
    return step.loss_of(*client.training(task).objective).values.item<double>();
  };
  CHECK_THAT(value(1), WithinAbs(0.415888, 1e-6)); // ln 2 / 2 + 0.1 ln 2
  CHECK_THAT(value(2), WithinAbs(0.300364, 1e-6)); // ln 2 / 3 + 0.1 ln 2
}

TEST_CASE("distillation is a mean over rows and old classes", "[dytox]") {
  const auto teacher = at::tensor({std::log(3.0F), 0.0F}).unsqueeze(0); // (0.75, 0.25)
  const auto rows =
      distillation_rows(at::zeros({1, 2}), teacher, {.form = distillation_form::kl_elements, .temperature = 1.0});
  CHECK_THAT(rows.item<double>(), WithinAbs(0.130812 / 2.0, 1e-6));
}

TEST_CASE("the divergence head separates new classes from each other and from all old ones", "[dytox]") {
  const auto client = token_client({10, 10});
  const rehearsed_step step{.logits = at::zeros({3, 20}),
                            .labels = at::tensor({3, 10, 19}, at::kLong),
                            .teacher = at::zeros({3, 10}),
                            .maps = {at::zeros({3, 11, 1, 1})},
                            .old_maps = {}};
  const auto gradients = step.loss_of(*client.training(1).objective).d_maps.at(0).flatten(2)[0]; // [3, 11]
  CHECK(at::equal(gradients.argmin(1), at::tensor({0, 1, 10}, at::kLong)));
  CHECK(((gradients < 0).sum(1) == 1).all().item<bool>());
}

TEST_CASE("each stage freezes the parts that the official code freezes", "[dytox]") {
  const auto record = golden_record("dytox/official")["frozen"];
  const auto client = token_client({3, 2});
  const auto jobs = trainings(client, client.sent(1, true), client.rows_of(0, 1, 5));
  REQUIRE(jobs.size() == 2);
  const auto theirs = record["task"].get<std::set<std::string>>();
  CHECK(fixed_parts(client, jobs[0]) == theirs);
  auto tuned = record["fine_tuning"].get<std::set<std::string>>();
  std::erase_if(tuned, [](const auto& name) { return name.starts_with("blocks.1."); }); // this net has one block
  auto ours = fixed_parts(client, jobs[1]);
  std::erase_if(ours, [](const auto& name) { return name.starts_with("divergence."); }); // not used by the loss
  CHECK(ours == tuned);
}

TEST_CASE("old tokens and heads keep their bits until they are tuned, and the encoder keeps them then", "[dytox]") {
  const auto client = token_client({2, 2}, {{"tuning_epochs", "2"}, {"tuning_rate", "0.1"}});
  const auto begun = client.setup.initial->at(flat_weights);
  const auto earlier = weights_after(client, 1, false), last = weights_after(client, 1, true);
  for (const auto* const name : {"task_tokens.0.token", "head_norms.0.weight"}) {
    INFO(name);
    CHECK(at::equal(part(client, earlier, name), part(client, begun, name)));
    CHECK_FALSE(at::equal(part(client, last, name), part(client, begun, name)));
  }
  const auto old_rows = [&](const at::Tensor& flat) { return part(client, flat, "head.weight").narrow(0, 0, 2); };
  CHECK(at::equal(old_rows(earlier), old_rows(begun)));
  CHECK_FALSE(at::equal(old_rows(last), old_rows(begun)));
  for (const auto* const name : {"patch_embed.proj.weight", "pos_embed", "blocks.0.attn.gating_param"}) {
    INFO(name);
    CHECK_FALSE(at::equal(part(client, earlier, name), part(client, begun, name)));
    CHECK(at::equal(part(client, last, name), part(client, earlier, name)));
  }
  for (const auto* const name : {"task_tokens.1.token", "divergence.linear.weight"})
    CHECK_FALSE(at::equal(part(client, earlier, name), part(client, begun, name)));
}

TEST_CASE("the first task has neither teacher nor divergence loss, and later tokens keep their initial draws",
          "[dytox]") {
  const auto client = token_client({2, 2});
  const auto job = client.training(0);
  CHECK(job.teachers.empty());
  CHECK(job.options.maps.empty());
  CHECK(trainings(client, client.sent(0, true), client.rows_of(0, 0, 5)).size() == 1); // no tuning
  const auto begun = client.setup.initial->at(flat_weights), learned = weights_after(client, 0, true);
  for (const auto* const name : {"task_tokens.1.token", "head_norms.1.bias", "divergence.linear.weight"})
    CHECK(at::equal(part(client, learned, name), part(client, begun, name)));
  const auto later_rows = [&](const at::Tensor& flat) { return part(client, flat, "head.weight").narrow(0, 2, 2); };
  CHECK(at::equal(later_rows(learned), later_rows(begun)));
}

TEST_CASE("tuning uses only labels, equal numbers of rows per class, and drop path", "[dytox]") {
  const auto client = token_client({2, 2}, {{"tuning_epochs", "3"}, {"tuning_rate", "0.01"}});
  const auto jobs = trainings(client, client.sent(1, true), client.rows_of(0, 1, 5));
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[1].samples.size() == 8); // two of each class
  CHECK(jobs[1].teachers.empty());
  CHECK(jobs[1].options.maps.empty());
  CHECK(jobs[1].options.held_classes == 0);
  CHECK(jobs[1].options.epochs == 3);
  CHECK(jobs[1].options.learning_rate == 0.01);
  CHECK(jobs[1].options.update_running_stats);
  const rehearsed_step step{.logits = at::zeros({2, 4}), .labels = at::tensor({0, 3}, at::kLong)};
  CHECK_THAT(step.loss_of(*jobs[1].objective).values.item<double>(), WithinAbs(std::log(2.0), 1e-6));
}

TEST_CASE("without distillation there is no teacher, and labels have the weight of the first task", "[dytox]") {
  const auto client = token_client({2, 2}, {{"distillation", "0"}, {"divergence", "0"}});
  const auto job = client.training(1);
  CHECK(job.teachers.empty());
  CHECK(job.options.maps.empty());
  const rehearsed_step step{.logits = at::zeros({2, 4}), .labels = at::tensor({0, 3}, at::kLong)};
  CHECK_THAT(step.loss_of(*job.objective).values.item<double>(), WithinAbs(std::log(2.0), 1e-6));
}

TEST_CASE("exemplars are selected by the tokens of finished tasks", "[dytox]") {
  auto client = token_client({2, 2});
  const auto large = initial_weights(*client.setup.net, 5) * 8.0; // so that tokens matter compared with the images
  const auto memory_with = [&](std::int64_t moved_token) {
    auto flat = large.clone();
    if (moved_token >= 0)
      net_of_client(client).token_of(flat, moved_token).copy_(at::linspace(-3.0, 3.0, 8).square());
    client.setup.initial = weights_only(flat);
    return client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 9))).memory->at("exemplars");
  };
  const auto unmoved = memory_with(-1);
  CHECK(at::equal(memory_with(1), unmoved));
  CHECK_FALSE(at::equal(memory_with(0), unmoved));
}

TEST_CASE("herding with repeats equals the official code's", "[dytox]") {
  const auto theirs = golden_record("dytox/official")["herding"].get<std::vector<std::int64_t>>();
  CHECK(choose_exemplars(formula_tensor("dytox.features", {30, 8}), 12, exemplar_choice::repeats) == theirs);
}

TEST_CASE("rates rise in the first round of a task and end at the minimum", "[dytox]") {
  auto client = token_client({2, 2}, {{"warmup_epochs", "5"}, {"rate_min", "0.02"}});
  client.setup.training.epochs = 20;
  client.setup.training.schedule = schedule_kind::cosine;
  client.method->prepare(client.setup);
  const auto first = trainings(client, client.sent(0, false), client.rows_of(0, 0, 5));
  REQUIRE(first.size() == 2);
  CHECK(first[0].options.epochs == 5);
  CHECK_THAT(first[0].options.learning_rate, WithinAbs((1e-6 + 0.4 * (0.1 - 1e-6)), 1e-12)); // at 0, 1, 2, 3, 4 fifths
  CHECK(first[1].options.epochs == 15);
  CHECK_THAT(first[1].options.learning_rate, WithinAbs(0.1, 1e-12));
  CHECK_FALSE(first[0].stream == first[1].stream);
  const auto last = trainings(client, client.sent(0, true), client.rows_of(0, 0, 5));
  REQUIRE(last.size() == 1);
  CHECK(last[0].options.epochs == 20);
  CHECK_THAT(last[0].options.learning_rate, WithinAbs(0.02 + 0.08 * 0.25, 1e-12)); // cosine at 2 / 3: 1 / 4
}

TEST_CASE("the server draws only a divergence head for each task", "[dytox]") {
  const auto client = token_client({2, 2, 2});
  const auto server = client.method->make_server();
  job_channel channel;
  server_context ctx(channel);
  const auto opened = [&](std::uint32_t task) {
    (void)run_step(server->open_task(ctx, client.sent(task, false).info), channel, *client.device);
    return server->predict().weights->at(flat_weights);
  };
  const auto first = opened(0), second = opened(1), third = opened(2);
  CHECK(at::equal(first, client.setup.initial->at(flat_weights)));
  for (const auto& entry : client.setup.net->layout()) {
    INFO(entry.name);
    const bool is_drawn = entry.name.starts_with("divergence.linear");
    CHECK(at::equal(as_in_files(second, entry), as_in_files(first, entry)) != is_drawn);
    CHECK(at::equal(as_in_files(third, entry), as_in_files(second, entry)) != is_drawn);
  }
  double sum = 0.0;
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)})
    sum += (net_of_client(client).token_of(third, a) - net_of_client(client).token_of(third, b)).norm().item<double>();
  CHECK_THAT(server->summary_metrics().at("token_distance"), WithinAbs(sum / 3.0, 1e-6));
}

TEST_CASE("a net without a token per task, and one with a fixed encoder, are refused", "[dytox]") {
  auto client = token_client({2, 2});
  CHECK(client.method->check(client.setup).empty());
  client.setup.trainable = trainable_part::head;
  client.setup.net = model_named("linear", {1, 1, 5}, 4);
  const auto errors = client.method->check(client.setup);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].where == "model.name");
  CHECK(errors[0].text.find("has no token per task") != std::string::npos);
  CHECK(errors[1].where == "model.trainable");
}
