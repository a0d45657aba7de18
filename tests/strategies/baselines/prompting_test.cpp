// Prompt methods: parts trained in a round, initial components of a task, Fed-CPrompt's contrastive loss compared with
// the official code, and refused settings.
#include "strategies/baselines/prompting.hpp"
#include "tests/support/method_federation.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

const std::vector<class_range> two_tasks{{0, 2}, {2, 4}};

rehearsing_client prompting_client(const std::string& name, const key_list& keys = {}) {
  const auto method = strategy_named(name);
  give_keys(*method, keys.pairs);
  return {name, {2, 2}, keys, row_prompted_vit(method->needs().prompts, two_tasks, rehearsing_client::features)};
}
/// Broadcast of a round in a task, as the method's own server sends it.
broadcast opened(const rehearsing_client& client, server_half& server, std::uint32_t task) {
  job_channel channel;
  server_context ctx(channel);
  const auto info = client.sent(task, false).info;
  (void)run_step(server.open_task(ctx, info), channel, *client.device);
  auto sent = server.open_round(info);
  sent.info = info;
  return sent;
}
/// Sent tensor with this name, in the shape of model files.
at::Tensor part_of(const rehearsing_client& client, const tensor_map& traveling, const std::string& name) {
  for (const auto& entry : client.setup.net->layout())
    if (entry.name == name)
      return traveling.at(name).view(entry.shape);
  FAIL("no parameter is called " << name);
  return {};
}
/// A client's round of the second task.
struct second_round {
  explicit second_round(const rehearsing_client& client) {
    const auto server = client.method->make_server();
    (void)opened(client, *server, 0);
    sent = opened(client, *server, 1);
    learned = client.round(client.work(sent, client.rows_of(1, 1, 6))).upload;
  }
  /// True if rows low to low + count of a parameter are those at the start of the round.
  [[nodiscard]] bool kept(const rehearsing_client& client, const std::string& name, std::int64_t low,
                          std::int64_t count) const {
    return at::equal(part_of(client, *sent.weights, name).narrow(0, low, count),
                     part_of(client, *learned, name).narrow(0, low, count));
  }
  broadcast sent;
  tensors_ref learned;
};

/// A step of Fed-CPrompt, by the distances between the class tokens of its three models.
loss_output contrast_of(const rehearsing_client& client, std::uint32_t task, const at::Tensor& logits,
                        const at::Tensor& labels, const std::array<at::Tensor, 3>& tokens) {
  const auto server = client.method->make_server();
  auto sent = opened(client, *server, 0);
  if (task > 0)
    sent = opened(client, *server, task);
  const auto jobs = jobs_of_kind<train_job>(
      jobs_of_round(*client.method, *client.device, client.work(sent, client.rows_of(task, task, 4))));
  const auto& objective = *jobs.at(0).objective;
  REQUIRE(jobs.at(0).teachers.size() == (task > 0 ? 2 : 1));
  const auto rows = logits.size(0);
  const auto z = logits.unsqueeze(0), x = tokens[0].unsqueeze(0), y = labels.unsqueeze(0);
  const auto w = at::full({1, rows}, 1.0 / static_cast<double>(rows), at::kFloat);
  const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
  loss_input in{.logits = z, .features = x, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
  in.teachers = {{.features = tokens[1].unsqueeze(0)}};
  if (task > 0)
    in.teachers.push_back({.features = tokens[2].unsqueeze(0)});
  return objective(in);
}
double contrast_term(const loss_output& loss) { return loss.terms.at(1).value.item<double>(); }

/// Class tokens of three models: the trained one, the received one at squared distances `near` from it, and the
/// previous one at squared distances `far`.
std::array<at::Tensor, 3> tokens_apart(const std::vector<float>& near, const std::vector<float>& far) {
  const auto rows = std::ssize(near);
  std::array<at::Tensor, 3> tokens{at::zeros({rows, 2}), at::zeros({rows, 2}), at::zeros({rows, 2})};
  tokens[1].select(1, 0).copy_(at::tensor(near).sqrt());
  tokens[2].select(1, 1).copy_(at::tensor(far).sqrt());
  return tokens;
}

/// Error of a method's check of a run, or "".
std::string complaint(const std::string& name, const key_list& keys,
                      const std::function<void(method_setup&)>& changed = {}) {
  const auto method = strategy_named(name);
  give_keys(*method, keys.pairs);
  auto shape = strategy_named(name)->needs().prompts;
  auto setup = setup_of_run(row_prompted_vit(shape, two_tasks, 5), 5, 2);
  setup.task_classes = two_tasks;
  if (changed)
    changed(setup);
  const auto errors = method->check(setup);
  return errors.empty() ? "" : errors.front().where + ": " + errors.front().text;
}

} // namespace

TEST_CASE("a new prompt component has length 1 and is orthogonal to trained ones of any length", "[prompting]") {
  auto rows = at::zeros({4, 3, 4});
  rows[0].view({-1})[0] = 3.0F;
  rows[1].view({-1})[1] = 0.2F;
  rng_stream draw({.seed = 3});
  const auto drawn = with_orthogonal_rows(rows, 2, draw).flatten(1);
  CHECK(at::equal(drawn.narrow(0, 0, 2), rows.narrow(0, 0, 2).flatten(1)));
  for (std::int64_t i = 2; i < 4; ++i)
    CHECK_THAT(drawn[i].norm().item<float>(), WithinAbs(1.0, 1e-6));
  CHECK(std::abs(at::dot(drawn[2], drawn[0]).item<float>()) < 1e-5F);
  CHECK(std::abs(at::dot(drawn[3], drawn[1]).item<float>()) < 1e-5F);
  CHECK(std::abs(at::dot(drawn[2], drawn[3]).item<float>()) < 1e-5F);
}

TEST_CASE("components of a task are zeros until the server draws them at the task's start", "[prompting]") {
  const auto client = prompting_client("fed-codap");
  const auto server = client.method->make_server();
  for (const std::uint32_t task : {0U, 1U}) {
    const auto keys = part_of(client, *opened(client, *server, task).weights, "prompts.3.keys"); // [20, 24]
    const auto begun = 10 * (static_cast<std::int64_t>(task) + 1);
    CHECK((keys.narrow(0, 0, begun).norm(2, {1}) - 1.0).abs().max().item<float>() < 1e-6F);
    CHECK_FALSE(keys.narrow(0, begun, 20 - begun).any().item<bool>());
  }
}

TEST_CASE("a round of Fed-CODAP trains only its task's components and classes' head rows", "[prompting]") {
  const auto client = prompting_client("fed-codap", {{"penalty", "0.1"}});
  const second_round round(client);
  for (const auto* const part : {"prompts.0.values", "prompts.0.keys", "prompts.0.focus"}) {
    INFO(part);
    CHECK(round.kept(client, part, 0, 10));
    CHECK_FALSE(round.kept(client, part, 10, 10));
  }
  CHECK(round.kept(client, "head.weight", 0, 2));
  CHECK_FALSE(round.kept(client, "head.weight", 2, 2));
  CHECK(std::ssize(*round.learned) == 5 * 3 + 2); // the body is not sent
}

TEST_CASE("a round of Fed-DualP trains the shared prompts and the slot of its task", "[prompting]") {
  for (const bool matched : {true, false}) {
    const auto client = prompting_client("fed-dualp", {{"match", matched ? "1" : "0"}});
    const second_round round(client);
    CHECK_FALSE(round.kept(client, "prompts.0.general", 0, 6));
    CHECK(round.kept(client, "prompts.2.values", 0, 1));
    CHECK_FALSE(round.kept(client, "prompts.2.values", 1, 1));
    CHECK(round.kept(client, "prompts.2.keys", 0, 1));
    CHECK(round.kept(client, "prompts.2.keys", 1, 1) == !matched); // no other loss reaches keys
  }
}

TEST_CASE("Fed-CPrompt's loss of a step equals the official code's", "[prompting]") {
  const auto record = golden_record("prompts/fed_cprompt");
  const auto client = prompting_client("fed-cprompt", {{"reduction", "sum"}});
  const auto logits = formula_tensor("cprompt.logits", {4, 5}, 2.0).narrow(1, 2, 3).contiguous(); // of the new classes
  const auto labels = labels_of(record["labels"]) - 2;
  for (const auto* const name : {"first", "later", "behind"}) {
    INFO(name);
    const auto& theirs = record[name];
    const auto token = formula_tensor("cprompt.token", {4, 16});
    const auto ours = contrast_of(client, std::string(name) == "first" ? 0 : 1, logits, labels,
                                  {token, token + formula_tensor("cprompt.received", {4, 16}, theirs["near"]),
                                   token + formula_tensor("cprompt.previous", {4, 16}, theirs["far"])});
    CHECK_THAT(ours.values.item<double>(), WithinAbs(theirs["loss"].get<double>(), 1e-3));
    CHECK_THAT(contrast_term(ours), WithinAbs(theirs["contrast"].get<double>(), 1e-3));
    CHECK(largest_difference_of(ours.d_features[0], listed_tensor(theirs["d_token"], {4, 16})) < 1e-3);
    CHECK(largest_difference_of(ours.d_logits[0], listed_tensor(theirs["d_logits"], {4, 3})) < 1e-6);
  }
}

TEST_CASE("the hinge of the contrastive loss applies to the batch, not to each row", "[prompting]") {
  const auto value = [](const std::string& reduction, const std::vector<float>& near, const std::vector<float>& far) {
    const auto client = prompting_client("fed-cprompt", {{"reduction", reduction}});
    const auto rows = std::ssize(near);
    return contrast_term(
        contrast_of(client, 1, at::zeros({rows, 2}), at::zeros({rows}, at::kLong), tokens_apart(near, far)));
  };
  CHECK_THAT(value("sum", {0.001F}, {0.05F}), WithinAbs(1.5, 1e-5));               // 1 - 0.5 + 1
  CHECK_THAT(value("sum", {0.001F, 0.0F}, {0.2F, 0.05F}), WithinAbs(0.0, 1e-12));  // 1 - 2.5 + 1 < 0
  CHECK_THAT(value("mean", {0.001F, 0.0F}, {0.2F, 0.05F}), WithinAbs(0.25, 1e-5)); // 0.5 - 1.25 + 1
}

TEST_CASE("the model of the previous task is sent without its body", "[prompting]") {
  const auto client = prompting_client("fed-cprompt");
  const auto server = client.method->make_server();
  const auto first = opened(client, *server, 0), second = opened(client, *server, 1);
  CHECK_FALSE(first.extra);
  REQUIRE(second.extra);
  CHECK(std::ssize(*second.extra) == std::ssize(*second.weights));
  for (const auto& [name, value] : *first.weights)
    CHECK(at::equal(second.extra->at(name), value)); // no client has trained since
}

TEST_CASE("task 1 of Fed-CPrompt uses the broadcast model and no second teacher", "[prompting]") {
  const auto client = prompting_client("fed-cprompt");
  const auto server = client.method->make_server();
  for (const std::uint32_t task : {0U, 1U}) {
    INFO("task " << task + 1);
    const auto sent = opened(client, *server, task);
    const auto jobs = jobs_of_kind<train_job>(
        jobs_of_round(*client.method, *client.device, client.work(sent, client.rows_of(task, task, 4))));
    REQUIRE(jobs.size() == 1);
    REQUIRE(jobs[0].teachers.size() == task + 1);
    CHECK(jobs[0].teachers[0] == jobs[0].start);
    CHECK(jobs[0].options.teachers[0].features);
  }
}

TEST_CASE("invalid prompt settings are refused", "[prompting]") {
  CHECK(complaint("fed-codap", {}).empty());
  CHECK(complaint("fed-codap", {{"length", "5"}}).starts_with("strategy.length: strategy.length = 5: half of a"));
  CHECK(complaint("fed-dualp", {{"general_length", "3"}}).starts_with("strategy.general_length: "));
  CHECK(complaint("fed-codap", {{"components", "13"}}).starts_with("strategy.components: 26 components of 2 tasks"));
  const auto decays = [](method_setup& setup) { setup.training.weight_decay = 0.1; };
  CHECK(complaint("fed-cprompt", {}, decays).starts_with("training.weight_decay: "));
  const auto again = [](method_setup& setup) { setup.task_classes = {{0, 4}, {0, 4}}; };
  CHECK(complaint("fed-dualp", {}, again).starts_with("tasks.kind: tasks.kind: class 0 occurs in a second task"));
  const auto other = [](method_setup& setup) { setup.net = model_named("linear", {1, 1, 5}, 4); };
  CHECK(complaint("fed-codap", {}, other).starts_with("model.name: "));
}
