// Training of clients of GLFC and LGA, and their detection of new tasks, by hand.
#include "runtime/base/digest.hpp"
#include "strategies/lga/gradient_compensation.hpp"
#include "strategies/lga/prototype_proxy.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include "tests/support/shown_steps.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fmt/format.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 6, classes = 5, every_row = 100;
using key_texts = std::vector<std::pair<std::string, std::string>>;
using row_numbers = std::vector<std::int64_t>;

/// Two tasks, of classes 0 and 1 and of 2 to 4, and one client with all rows of its task. Features are pixels.
struct lone_client {
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::shared_ptr<const dataset> rows = striped_rows(every_row, features, classes);
  method_setup setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, 2);
  std::unique_ptr<server_half> server;
  memory_ref memory;
  tensors_ref advice;

  explicit lone_client(const std::string& name, key_texts keys = {}, bool oracle = true)
      : method(strategy_named(name)) {
    keys.insert(keys.begin(), {{"memory", "10"}, {"reconstruction_steps", "1"}, {"images_per_gradient", "1"}});
    give_keys(*method, keys);
    setup.training = {.epochs = 20, .batch = 10, .learning_rate = 0.2};
    setup.rounds.per_task = 10;
    setup.task_classes = {{0, 2}, {2, 5}};
    setup.oracle = oracle;
    method->prepare(setup);
    server = method->make_server();
  }
  [[nodiscard]] static row_numbers held_in(std::uint32_t task) {
    row_numbers mine;
    for (std::int64_t r = 0; r < every_row; ++r)
      if ((r % classes >= 2) == (task == 1))
        mine.push_back(r);
    return mine;
  }
  [[nodiscard]] assignment work_in(std::uint32_t task, std::uint32_t round) const {
    const round_info info{.round = {round},
                          .task = {task},
                          .seen_classes = {0, task == 0 ? 2 : 5},
                          .current_classes = {task == 0 ? 0 : 2, task == 0 ? 2 : 5}};
    auto in = server->open_round(info);
    in.info = info;
    in.advice = advice;
    return {.in = std::make_shared<const broadcast>(in),
            .memory = memory,
            .samples = view_of(rows, held_in(task)),
            .seed = 5,
            .visit = round,
            .task = {task}};
  }
  plan jobs_in(std::uint32_t task, std::uint32_t round) {
    return jobs_of_round(*method, *device, work_in(task, round));
  }
  client_result take_part(std::uint32_t task, std::uint32_t round) {
    auto result = run_round(*method, *device, work_in(task, round));
    memory = result.memory;
    return result;
  }
  /// Mean entropy of the seen classes over the rows of a task, under the broadcast model.
  [[nodiscard]] double entropy_in(std::uint32_t task) {
    const auto work = work_in(task, 0);
    const auto seen =
        run_plan(*device, {extract_job{.net = setup.net, .weights = work.in->weights, .samples = work.samples}});
    const auto logits = std::get<extract_output>(std::get<work_output>(seen[0])).logits;
    return mean_entropy(logits.narrow(1, 0, work.in->info.seen_classes.high));
  }
};

/// Old models in the proxy's advice, each with all weights of one value.
tensors_ref advice_of(std::int64_t size, float before, float latest) {
  auto error_text = std::make_shared<tensor_map>();
  for (const auto& [name, fill, seen] :
       {std::tuple{"before", before, std::int64_t{1}}, std::tuple{"latest", latest, std::int64_t{2}}}) {
    error_text->put(name, at::full({size}, fill));
    error_text->put(std::string(name) + "_classes", at::tensor(seen, at::kLong));
  }
  return error_text;
}

} // namespace

TEST_CASE("each method and variant trains by its own loss terms", "[lga]") {
  using enum gradient_weighting;
  const forgetting_terms printed{.likelihood = class_likelihood::softmax, .weighting = per_task};
  const forgetting_terms released{.likelihood = class_likelihood::sigmoid, .weighting = cumulative};
  forgetting_terms glfc{.likelihood = class_likelihood::softmax, .weighting = old_new};
  glfc.weighs_distillation = false;
  glfc.label_factor = glfc.distillation_factor = 0.5;
  auto glfc_released = glfc;
  glfc_released.likelihood = class_likelihood::sigmoid;
  auto plain_labels = printed, icarl = printed;
  plain_labels.weighs_labels = false;
  icarl.distillation = distillation_kind::icarl;
  icarl.weighs_distillation = false;
  const auto check_terms = [](const char* name, const key_texts& keys, const forgetting_terms& expected) {
    lone_client client(name, keys);
    const auto jobs = jobs_of_kind<train_job>(client.jobs_in(0, 0));
    CAPTURE(name, keys);
    CHECK(jobs.at(0).objective->identity() == forgetting_objective(expected)->identity());
  };
  check_terms("lga", {{"losses", "paper"}}, printed);
  check_terms("lga", {{"losses", "official"}}, released);
  check_terms("lga", {{"cbl", "false"}}, plain_labels);
  check_terms("lga", {{"sdl", "false"}}, icarl);
  check_terms("glfc", {{"losses", "paper"}}, glfc);
  check_terms("glfc", {{"losses", "official"}}, glfc_released);
}

TEST_CASE("official weights stay within 0.5 and 5, those of the paper do not", "[lga]") {
  std::vector<double> magnitudes(10, 0.01);
  magnitudes.front() = 1.0; // nearly ten times the mean of 0.1
  const auto weights_by = [&](gradient_weighting kind) {
    return row_weights(at::tensor(magnitudes, at::kDouble), at::zeros({10}, at::kLong), 1, kind);
  };
  const auto released = weights_by(gradient_weighting::cumulative), printed = weights_by(gradient_weighting::per_task);
  CHECK(released[0].item<double>() == 5.0);
  CHECK(released[9].item<double>() == 0.5);
  CHECK_THAT(printed[0].item<double>(), WithinRel(1.0 / 0.109, 1e-12));
  CHECK_THAT(printed[9].item<double>(), WithinRel(0.01 / 0.109, 1e-12));
}

TEST_CASE("a client's loss receives the old classes with task and exponent", "[lga]") {
  struct expected {
    const char *name, *losses;
    double exponent;
  };
  for (const auto& [name, losses, exponent] : {expected{"lga", "paper", 2.0 / 5},    // share of old classes
                                               expected{"lga", "official", 1.0 / 2}, // t / (t + 1)
                                               expected{"glfc", "paper", 1.0}}) {
    lone_client client(name, {{"losses", losses}});
    CHECK_FALSE(jobs_of_kind<train_job>(client.jobs_in(0, 0)).at(0).auxiliary); // no old classes
    (void)client.take_part(0, 0);
    const auto job = jobs_of_kind<train_job>(client.jobs_in(1, 10)).at(0);
    CAPTURE(name, losses);
    REQUIRE(job.auxiliary);
    CHECK_THAT(job.auxiliary->at("exponent").item<double>(), WithinRel(exponent, 1e-12));
    CHECK(at::equal(job.auxiliary->at("group_of_class"), at::tensor({0, 0, -1, -1, -1}, at::kLong)));
    CHECK(job.auxiliary->at("old_tasks").item<std::int64_t>() == 1);
    CHECK(job.samples.size() == 60 + 2 * 5); // its rows, and five exemplars of each old class
    CHECK((job.options.classes == class_range{0, 5}));
  }
}

TEST_CASE("a client's training and memory depend on the announced task only with an oracle", "[lga]") {
  for (const auto* name : {"lga", "glfc"})
    for (const bool oracle : {false, true}) {
      CAPTURE(name, oracle);
      lone_client client(name, {}, oracle);
      client.take_part(0, 0);
      const auto told = [&client](std::uint32_t task, class_range current) {
        auto work = client.work_in(1, 1);
        auto in = *work.in;
        in.info.task = {task};
        in.info.current_classes = current;
        work.in = std::make_shared<const broadcast>(in);
        return work;
      };
      const auto trained_on = [&client](const assignment& work) { // keys of shuffles are not compared
        const auto jobs = jobs_of_kind<train_job>(jobs_of_round(*client.method, *client.device, work));
        return *jobs.at(0).samples.rows;
      };
      CHECK((trained_on(told(1, {2, 5})) == trained_on(told(0, {0, 5}))) == !oracle);
      const auto here = run_round(*client.method, *client.device, told(1, {2, 5}));
      const auto blanked = run_round(*client.method, *client.device, told(0, {0, 5}));
      CHECK((digest_of(*here.memory) == digest_of(*blanked.memory)) == !oracle);
      CHECK((here.counts == blanked.counts) == !oracle);
    }
}

TEST_CASE("a client that has just detected a task learns from the latest best model, others from the previous one",
          "[lga]") {
  lone_client client("lga");
  client.advice = advice_of(client.setup.net->size(), 0.25F, 0.5F);
  (void)client.take_part(0, 0);
  const auto taught_by = [&](std::uint32_t task, std::uint32_t round) {
    const auto job = jobs_of_kind<train_job>(client.jobs_in(task, round)).at(0);
    return std::pair{job.teachers.at(0)->at(flat_weights)[0].item<float>(), job.options.teachers.at(0).classes.high};
  };
  CHECK(taught_by(0, 1) == std::pair{0.25F, std::int64_t{1}});
  CHECK(taught_by(1, 10) == std::pair{0.5F, std::int64_t{2}}); // it detects the task
  (void)client.take_part(1, 10);
  CHECK(taught_by(1, 11) == std::pair{0.25F, std::int64_t{1}});
}

TEST_CASE("an entropy rise equal to the threshold is detected in the paper's variant, not in the official one",
          "[lga]") {
  for (const std::string name : {"lga", "glfc"}) {
    lone_client client(name, {}, false);
    const auto entropy = client.entropy_in(0); // it was 0 before the first round
    REQUIRE(entropy > 0.1);
    const auto notices = [&](const std::string& losses, double threshold) {
      lone_client other(name, {{"losses", losses}, {"threshold", fmt::format("{}", threshold)}}, false);
      return other.take_part(0, 0).counts.at("transitions_detected") == 1.0;
    };
    const auto stays = [&](const std::string& losses, double threshold) {
      lone_client other(name, {{"losses", losses}, {"threshold", fmt::format("{}", threshold)}}, false);
      return other.take_part(0, 0).counts.at("transitions_missed") == 1.0;
    };
    CAPTURE(name, entropy);
    CHECK(notices("paper", entropy));
    CHECK(stays("paper", std::nextafter(entropy, 9.0)));
    CHECK(stays("official", entropy));
    CHECK(notices("official", std::nextafter(entropy, 0.0)));
  }
}

TEST_CASE("learning rates that fall within a round make two jobs, the second from the end of the first", "[lga]") {
  lone_client client("lga", {{"rates", "persistent-decay"}});
  (void)client.take_part(0, 0);
  const auto jobs = jobs_of_kind<train_job>(client.jobs_in(0, 7)); // epochs 140 to 159 of the task
  REQUIRE(jobs.size() == 2);
  CHECK((jobs[0].options.epochs == 10 && jobs[1].options.epochs == 10));
  CHECK_THAT(jobs[0].options.learning_rate, WithinRel(0.2 / 5, 1e-12));
  CHECK_THAT(jobs[1].options.learning_rate, WithinRel(0.2 / 25, 1e-12));
  CHECK_FALSE(at::equal(jobs[1].start->at(flat_weights), jobs[0].start->at(flat_weights)));
  CHECK(jobs[0].stream.visit == 7);
  CHECK(jobs[1].stream.visit == 7 + (1 << 24)); // it has its own shuffle
}

TEST_CASE("learning rate decay restarts after 200 epochs of a task", "[lga]") {
  using stretches = std::vector<rate_stretch>;
  for (const std::int64_t later : {0, 10, 20}) {
    CHECK((rates_of_round(rate_schedule::code_quirk, 5 + later, 20) == stretches{{20, 1.0 / 5}}));
    CHECK((rates_of_round(rate_schedule::persistent_decay, 4 + later, 20) == stretches{{20, 1.0}}));
  }
}

TEST_CASE("a prototype is the row nearest to its class mean, by normalized features", "[lga]") {
  lone_client client("lga");
  const auto jobs = jobs_of_kind<program_job>(client.jobs_in(0, 0));
  REQUIRE(jobs.size() == 1);
  row_numbers expected;
  for (std::int64_t label = 0; label < 2; ++label) {
    row_numbers own;
    for (const auto row : lone_client::held_in(0))
      if (row % classes == label)
        own.push_back(row);
    const auto pixels = client.rows->images.flatten(1).index_select(0, at::tensor(own, at::kLong));
    const auto x = pixels.to(at::kDouble) / 255.0 - 0.5;
    const auto unit = x / x.norm(2, {1}, true);
    expected.push_back(
        own[static_cast<std::size_t>((unit - unit.mean(0)).norm(2, {1}, false).argmin().item<std::int64_t>())]);
  }
  CHECK(*jobs[0].samples.rows == expected);
  CHECK(jobs[0].rows == 50 * 2);
  CHECK(jobs[0].in->at("seen").item<std::int64_t>() == 2);
}

TEST_CASE("exemplars of a task join earlier ones, whose number shrinks", "[lga]") {
  lone_client client("lga", {{"memory", "8"}});
  (void)client.take_part(0, 0);
  (void)client.take_part(1, 10);
  const auto numbers_of = [&](const char* name) {
    const auto& found = client.memory->at(name);
    return row_numbers(found.const_data_ptr<std::int64_t>(), found.const_data_ptr<std::int64_t>() + found.numel());
  };
  const auto first = numbers_of("exemplars");
  REQUIRE(first.size() == 8); // 8 / 2 of each class
  // A third task begins for the client: rows of the first task could not be selected again.
  auto work = client.work_in(1, 11);
  work.samples = view_of(client.rows, {2, 3, 4, 7, 8, 9});
  auto in = *work.in;
  in.info.task = {2};
  work.in = std::make_shared<const broadcast>(in);
  client.memory = run_round(*client.method, *client.device, work).memory;
  const auto second = numbers_of("exemplars");
  REQUIRE(second.size() == 5);  // 8 / 5 of each class
  CHECK(second[0] == first[0]); // the best one stays
  CHECK(second[1] == first[4]);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(second[i] % classes == static_cast<std::int64_t>(i));
}

TEST_CASE("a client at an old task trains on all its rows as in official code, on exemplars as in the paper", "[lga]") {
  for (const bool printed : {false, true}) {
    CAPTURE(printed);
    lone_client client("lga", {{"memory", "8"}, {"old_clients", printed ? "exemplars" : "full"}});
    (void)client.take_part(0, 0);
    const auto stays = [&](std::uint32_t round) { // the head grows, and its first rows are those of the first task
      auto work = client.work_in(1, round);
      work.samples = view_of(client.rows, lone_client::held_in(0));
      auto result = run_round(*client.method, *client.device, work);
      client.memory = result.memory;
      return result;
    };
    const auto first = stays(10), second = stays(11);
    CHECK(first.rows == (printed ? 8 : 40));
    CHECK(second.rows == (printed ? 8 : 40));
    CHECK((first.to_proxy == nullptr) == printed); // a task has begun: the official code sends prototypes
    const auto later = client.take_part(1, 12);    // it enters the second task
    CHECK(later.rows == 60 + (printed ? 8 : 0));
  }
}

TEST_CASE("with groups drawn by round, a share of clients with exemplars sees only these", "[lga]") {
  for (const double share : {0.0, 1.0}) {
    CAPTURE(share);
    lone_client client("lga", {{"memory", "8"}, {"regroup", "round"}});
    CHECK(client.method->needs().assigns_old_task_clients);
    client.setup.keep_task_share = share;
    client.method->prepare(client.setup);
    CHECK(client.take_part(0, 0).rows == 40);      // no class is old yet
    CHECK(client.take_part(1, 10).rows == 60 + 8); // it had no exemplars when the round began
    CHECK(client.take_part(1, 11).rows == (share > 0.0 ? 8 : 60 + 8));
  }
}

TEST_CASE("new clients are drawn into cohorts unless the pool is fixed", "[lga]") {
  for (const bool fixed : {false, true}) {
    lone_client client("lga", {{"pool", fixed ? "fixed" : "growing"}});
    job_channel channel;
    server_context ctx(channel);
    const auto plan = run_step(client.server->open_task(ctx, class_task(0, 2)), channel, *client.device);
    CHECK(plan.first_enrolled_only == fixed);
  }
}
