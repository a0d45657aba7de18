// OSI-FL without actors: uploads of clients, the one-shot rule, and generation, training and memory of the server.
#include "strategies/osi_fl/best_epoch.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
#include "strategies/osi_fl/weight_change_penalty.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t classes = 4, public_rows = 40;
const shape3 images{1, 8, 8};

/// A quarter of each image is bright, depending on its label; the brightness depends on the row.
std::shared_ptr<const dataset> quarters(std::int64_t rows) {
  auto made = drawn_data(rows, images, classes);
  auto* pixel = made->images.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t y = 0; y < 8; ++y)
      for (std::int64_t x = 0; x < 8; ++x, ++pixel)
        *pixel = static_cast<std::uint8_t>(*pixel / 8 + (2 * (y / 4) + x / 4 == row % classes ? 80 + row % 7 * 20 : 0));
  return made;
}

/// Tasks of two classes. Client c of task t holds every sixth row of its classes, from row 40 on.
struct federation {
  std::shared_ptr<const dataset> rows = quarters(200);
  std::unique_ptr<strategy> method = strategy_named("osi-fl");
  std::unique_ptr<executor> device = make_executor("cpu");
  model_ref net = model_named("mlp", images, classes);
  generated_row_store made{row_format{.scale = rows->scale, .shift = rows->shift, .classes = classes}};
  std::unique_ptr<server_half> server;

  explicit federation(const key_list& keys = {}) {
    give_keys(*method, {{"images", "3"},
                        {"sampling_steps", "3"},
                        {"encoder_passes", "2"},
                        {"denoiser_passes", "4"},
                        {"generator_batch", "8"}});
    give_keys(*method, keys.pairs);
    method->prepare(setup());
    server = method->make_server();
  }
  [[nodiscard]] method_setup setup() const {
    auto given = setup_of_run(net, 64, 2);
    given.shape = images;
    given.task_classes = {{0, 2}, {2, 4}};
    given.public_rows = public_rows;
    given.clients = 4;
    given.training = {.optimizer = optimizer_kind::adam, .epochs = 4, .batch = 4, .learning_rate = 3e-3};
    return given;
  }
  [[nodiscard]] static round_info info(std::uint32_t task) {
    auto where = class_task(task, 2);
    where.round = {task};
    return where;
  }
  [[nodiscard]] std::vector<std::int64_t> held_by(std::uint32_t client, std::uint32_t task) const {
    std::vector<std::int64_t> mine;
    for (std::int64_t row = public_rows; row < 200; ++row)
      if (row % classes / 2 == task && row / classes % 2 == client % 2)
        mine.push_back(row);
    return mine;
  }
  /// A server with a trained generator, which takes a second; no key of this file changes the generator.
  [[nodiscard]] static archive& trained() {
    static archive saved;
    return saved;
  }
  task_plan open(std::uint32_t task) {
    if (task == 0 && trained().size() > 0) {
      const auto bytes = trained().contents();
      archive loading(bytes, 0, bytes->size());
      server->persist(loading);
      return {.rounds = 1, .all_enrolled = true};
    }
    auto plan = opened(task);
    if (task == 0)
      server->persist(trained());
    return plan;
  }
  task_plan opened(std::uint32_t task) {
    const listed_rows central(rows, [](std::uint32_t t) {
      std::vector<std::int64_t> open;
      for (std::int64_t row = 0; row < public_rows; ++row)
        if (row % classes / 2 == t)
          open.push_back(row);
      return open;
    });
    job_channel channel;
    server_context ctx(channel, &central, &made);
    return run_step(server->open_task(ctx, info(task)), channel, *device);
  }
  client_result answer(std::uint32_t client, std::uint32_t task) {
    auto in = server->open_round(info(task));
    in.info = info(task);
    return run_round(*method, *device,
                     {.client = {client},
                      .in = std::make_shared<const broadcast>(in),
                      .samples = view_of(rows, held_by(client, task)),
                      .seed = 5});
  }
  void fold(std::uint32_t client, const client_result& result) {
    server->fold({.from = {client}, .upload = result.upload, .rows = result.rows});
  }
  void close(std::uint32_t task) {
    job_channel channel;
    server_context ctx(channel, nullptr, &made);
    run_step(server->close_round(ctx, info(task)), channel, *device);
  }
  /// Training jobs at the end of a round.
  std::vector<train_job> closed(const round_info& where) {
    job_channel channel;
    server_context ctx(channel, nullptr, &made);
    plan jobs;
    run_shown_step(server->close_round(ctx, where), channel, *device,
                   [&](const plan& wanted) { jobs.insert(jobs.end(), wanted.begin(), wanted.end()); });
    return jobs_of_kind<train_job>(jobs);
  }
  /// Both tasks with two clients each, and uploads of a task in this order.
  void run(bool reversed = false) {
    for (std::uint32_t task = 0; task < 2; ++task) {
      (void)open(task);
      const auto first = answer(2 * task, task), second = answer(2 * task + 1, task);
      fold(2 * task + (reversed ? 1 : 0), reversed ? second : first);
      fold(2 * task + (reversed ? 0 : 1), reversed ? first : second);
      close(task);
    }
  }
  [[nodiscard]] at::Tensor model() const { return server->predict().weights->at(flat_weights); }
};

at::Tensor model_of(const key_list& keys, bool reversed = false) {
  federation federated(keys);
  federated.run(reversed);
  return federated.model();
}

} // namespace

TEST_CASE("a client sends 512 numbers for each of its classes and little else") {
  federation federated;
  const auto plan = federated.open(0);
  CHECK(plan.rounds == 1);
  CHECK(plan.all_enrolled);
  const auto sent = federated.answer(0, 0);
  CHECK(sent.rows == 40);
  CHECK_FALSE(sent.memory);
  CHECK(at::equal(sent.upload->at("classes"), at::tensor({0, 1}, at::kInt)));
  CHECK(at::equal(sent.upload->at("counts"), at::tensor({20, 20}, at::kInt)));
  CHECK((sent.upload->at("means").sizes() == at::IntArrayRef{2, 512}));
  CHECK(sent.upload->bytes() == 2 * (512 * 4 + 8) + 4);
  // NICO++: ten classes per task, or 60 per domain; the paper counts only the numbers.
  CHECK(10 * 512 * 4 == 20'480);
  CHECK(60 * 512 * 4 == 122'880);
  CHECK(77 * 768 * 4 == 236'544); // one class of sd77x768
  const auto broadcast = federated.server->open_round(federation::info(0));
  CHECK(broadcast.weights->bytes() == 0);
  CHECK(broadcast.initial_payload->size() == 1);
}

TEST_CASE("a method that trains sends a model in each round of a task, as the paper counts it") {
  const auto counted = [](const std::string& name, const model_ref& net, std::int64_t rounds,
                          trainable_part part = trainable_part::all) {
    const auto method = strategy_named(name);
    auto setup = setup_of_run(net, 28 * 28, 1);
    setup.rounds.per_task = rounds;
    setup.trainable = part;
    method->prepare(setup);
    return method->make_server()->summary_metrics().at("paper_params");
  };
  const auto resnet = net_of("resnet18", {3, 224, 224}, 1000, {{"stem", "imagenet"}});
  const auto whole = counted("fedavg", resnet, 20);
  CHECK(whole == 20.0 * 11'689'512);
  CHECK(whole == 233'790'240.0);                                  // the paper's 233 million
  CHECK(static_cast<std::int64_t>(whole) / (60 * 512) == 7'610);  // an OSI-FL client's upload of 60 classes
  CHECK(static_cast<std::int64_t>(whole) / (10 * 512) == 45'662); // of ten classes
  CHECK(counted("fedavg", resnet, 20, trainable_part::head) == 20.0 * 513 * 1000);

  const auto lenet = net_of("lenet", {1, 28, 28}, 10);
  for (const auto* name : {"fedavg", "fed-dyn", "fed-et", "fed-ewc", "fed-il-plus"}) {
    CAPTURE(name);
    CHECK(counted(name, lenet, 5) == 5.0 * 61'706);
  }
}

TEST_CASE("a client that uploads twice in a task violates the method's rule") {
  federation federated;
  (void)federated.open(0);
  const auto sent = federated.answer(1, 0);
  federated.fold(1, sent);
  CHECK_THROWS_WITH(federated.fold(1, sent),
                    "client 1 already sent its message in task 1; a client of a one-shot federation sends one message");
  federated.close(0);
  CHECK_THROWS(federated.fold(1, sent)); // not later either
  federated.fold(0, sent);               // another client
  archive saved;
  federated.server->persist(saved);
  const auto bytes = saved.contents();
  archive loaded(bytes, 0, bytes->size());
  const auto elsewhere = federated.method->make_server();
  elsewhere->persist(loaded);
  CHECK_THROWS_WITH(elsewhere->fold({.from = {1}, .upload = sent.upload, .rows = 40}),
                    ContainsSubstring("already sent its message in task 1"));
}

TEST_CASE("the order in which clients arrive changes nothing") { CHECK(same_bits(model_of({}), model_of({}, true))); }

TEST_CASE("OSI-FL without retained images is OSCAR-IL, and all variants share the first task") {
  const auto incremental = model_of({{"mode", "oscar-il"}});
  CHECK(same_bits(model_of({{"retained_per_class", "0"}}), incremental));
  CHECK(same_bits(model_of({{"mode", "oscar-r"}, {"lambda", "0"}}), incremental));
  CHECK_FALSE(same_bits(model_of({{"retained_per_class", "1"}}), incremental));
  CHECK_FALSE(same_bits(model_of({{"mode", "oscar-r"}}), incremental));
  CHECK_FALSE(same_bits(model_of({{"mode", "oscar"}}), incremental));

  std::vector<at::Tensor> first;
  for (const auto* mode : {"osi-fl", "oscar", "oscar-il"}) {
    federation federated({{"mode", mode}});
    (void)federated.open(0);
    federated.fold(0, federated.answer(0, 0));
    federated.close(0);
    first.push_back(federated.model());
    CHECK(same_bits(first.back(), first.front()));
  }
}

TEST_CASE("p images of each class and task are retained, and the ceiling keeps all") {
  // Two clients, two classes, three images each: six of a class.
  for (const auto& [p, kept] : {std::pair{"2", 8.0}, {"5", 20.0}, {"6", 24.0}, {"100", 24.0}, {"0", 0.0}}) {
    CAPTURE(p);
    federation federated({{"retained_per_class", p}});
    federated.run();
    CHECK(federated.server->summary_metrics().at("generated_images") == 24.0);
    CHECK(federated.server->summary_metrics().at("retained_images") == kept);
    CHECK(federated.server->summary_metrics().at("paper_params") == 1024.0);
  }
  federation ceiling({{"mode", "oscar"}});
  ceiling.run();
  CHECK(ceiling.server->summary_metrics().at("retained_images") == 24.0);
}

TEST_CASE("the largest memory of server and clients is counted") {
  federation federated({{"retained_per_class", "2"}});
  federated.run();
  const auto figures = federated.server->summary_metrics();
  const auto encoder = federated.server->open_round(federation::info(0)).initial_payload->bytes();
  const auto upload = federated.answer(0, 0).upload->bytes();
  CHECK(figures.at("client_held_bytes") == static_cast<double>(40 * 64 + encoder + upload)); // 40 rows of 8 x 8 pixels
  // The second task: all nets, two messages, 2 x 2 x 3 new images and 2 x 2 of the first task, with labels of 8 bytes.
  const auto setup = federated.setup();
  const auto sample_images = (12 + 4) * (64 + 8), model = static_cast<int>(setup.initial->bytes());
  const auto rest = figures.at("server_held_bytes") - static_cast<double>(2 * upload + sample_images + model);
  const latent_shape shape{.image = images, .kinds = classes};
  const auto nets = image_encoder(shape).parameters().size() + latent_denoiser(shape).parameters().size() + 64 * 64 +
                    64 + 64 + 1 + 1; // components of 64 pixels: basis, center, spread, scale, shift
  CHECK(rest == static_cast<double>(4 * nets));
}

TEST_CASE("a task may generate fewer images than are retained of earlier ones") {
  federation federated({{"retained_per_class", "100"}});
  (void)federated.open(0);
  for (const std::uint32_t client : {0U, 1U})
    federated.fold(client, federated.answer(client, 0));
  federated.close(0);
  (void)federated.open(1);
  federated.fold(2, federated.answer(2, 1));
  const auto jobs = federated.closed(federation::info(1));
  REQUIRE(jobs.size() == 2); // 6 new images, 12 retained: tasks have equal weight
  REQUIRE(jobs[0].annotations.weights);
  auto expected = std::vector<float>(18, 0.75F);
  std::fill_n(expected.begin(), 6, 1.5F);
  CHECK((*jobs[0].annotations.weights == expected));
  CHECK_FALSE(jobs[1].annotations.weights); // new images are scored separately
  CHECK(federated.server->summary_metrics().at("retained_images") == 18.0);
}

TEST_CASE("each criterion, scoring model and weighting gives another model") {
  std::vector<at::Tensor> models;
  for (const auto& keys : std::vector<key_list>{{{"retained_per_class", "3"}},
                                                {{"retained_per_class", "3"}, {"scoring_model", "after"}},
                                                {{"retained_per_class", "3"}, {"criterion", "loss"}},
                                                {{"retained_per_class", "3"}, {"criterion", "random"}},
                                                {{"retained_per_class", "3"}, {"criterion", "herding"}},
                                                {{"retained_per_class", "3"}, {"replay", "concat"}},
                                                {{"retained_per_class", "3"}, {"guidance", "60"}}}) {
    auto with = keys;
    with.pairs.emplace_back("images", "16"); // so that two criteria hardly select the same three by chance
    models.push_back(model_of(with));
    for (std::size_t other = 0; other + 1 < models.size(); ++other) {
      CAPTURE(keys.pairs.back().first, keys.pairs.back().second, other);
      CHECK_FALSE(same_bits(models.back(), models[other]));
    }
  }
}

TEST_CASE("training continues from the last task's model, and rows are scored by it or by the new one") {
  for (const std::string moment : {"before", "after"}) {
    federation federated({{"retained_per_class", "1"}, {"scoring_model", moment}});
    for (const std::uint32_t task : {0U, 1U}) {
      CAPTURE(moment, task);
      (void)federated.open(task);
      federated.fold(2 * task, federated.answer(2 * task, task));
      const auto before = federated.model().clone();
      const auto jobs = federated.closed(federation::info(task));
      REQUIRE(jobs.size() == 2);
      CHECK(same_bits(jobs[0].start->at(flat_weights), before));
      CHECK(jobs[1].options.result == training_result::row_norms);
      CHECK(same_bits(jobs[1].start->at(flat_weights), moment == "before" ? before : federated.model()));
    }
  }
  federation ceiling({{"mode", "oscar"}}); // the upper bound trains on all images
  for (const std::uint32_t task : {0U, 1U}) {
    (void)ceiling.open(task);
    ceiling.fold(2 * task, ceiling.answer(2 * task, task));
    const auto jobs = ceiling.closed(federation::info(task));
    REQUIRE(jobs.size() == 1);
    CHECK(same_bits(jobs[0].start->at(flat_weights), ceiling.setup().initial->at(flat_weights)));
  }
}

TEST_CASE("the official variant covers all classes, trains the frozen part's statistics, and scores augmented views") {
  federation federated({{"retained_per_class", "1"},
                        {"criterion", "loss"},
                        {"scoring_model", "after"},
                        {"loss_classes", "all"},
                        {"frozen_norm", "batch"},
                        {"score_view", "augmented"},
                        {"mode", "osi-fl"}});
  auto setup = federated.setup();
  setup.trainable = trainable_part::head;
  setup.training.augment = augmentation_kind::crop_flip;
  federated.method->prepare(setup);
  federated.server = federated.method->make_server();
  (void)federated.open(0);
  federated.fold(0, federated.answer(0, 0));
  const auto jobs = federated.closed(federation::info(0));
  REQUIRE(jobs.size() == 1); // scores come from an extraction
  CHECK(jobs[0].options.classes == class_range{0, classes});
  CHECK(jobs[0].options.update_running_stats);
  CHECK(jobs[0].options.trained == trainable_part::head);
  CHECK(federated.method->check(setup).empty());
  setup.trainable = trainable_part::all;
  setup.training.augment = augmentation_kind::none;
  const auto errors = federated.method->check(setup);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].where == "strategy.frozen_norm");
  CHECK(errors[1].where == "strategy.score_view");
}

TEST_CASE("OSCAR's official variant selects the best epoch, and rows are scored by gradients of one pass") {
  for (const auto* const mode : {"oscar", "osi-fl"}) {
    federation federated({{"mode", mode}, {"keep_epoch", "best"}});
    (void)federated.open(0);
    federated.fold(0, federated.answer(0, 0));
    const auto jobs = federated.closed(federation::info(0));
    CAPTURE(mode);
    REQUIRE(jobs.size() == (mode == std::string("oscar") ? 1U : 2U));
    CHECK(jobs[0].observation == best_epoch_observation());
    CHECK((jobs.back().observation != nullptr) == (jobs.size() == 1));
  }
}

TEST_CASE("OSCAR-R's official variant has no penalty in the first task and weights changes by tensor") {
  for (const auto* const penalty : {"sum", "tensor-means"}) {
    federation federated({{"mode", "oscar-r"}, {"lambda", "0.01"}, {"penalty", penalty}});
    for (const std::uint32_t task : {0U, 1U}) {
      CAPTURE(penalty, task);
      (void)federated.open(task);
      federated.fold(2 * task, federated.answer(2 * task, task));
      const auto jobs = federated.closed(federation::info(task));
      const bool sum = penalty == std::string("sum");
      const auto expected = sum         ? proximal_objective(0.01)
                            : task == 0 ? cross_entropy_objective()
                                        : weight_change_penalty(*federated.net, 0.01);
      CHECK(jobs.at(0).objective->identity() == expected->identity());
    }
  }
}

TEST_CASE("random selection draws again for every task") {
  const auto kept_in = [](std::uint32_t task) { // indices among the images of client 0
    federation federated({{"retained_per_class", "2"}, {"criterion", "random"}, {"images", "12"}});
    auto where = federation::info(0);
    where.task = {task};
    (void)federated.open(0);
    federated.fold(0, federated.answer(0, 0));
    const auto first = federated.closed(where).at(0).samples.source->images;
    federated.fold(1, federated.answer(1, 0));
    const auto second = federated.closed(where).at(0).samples.source->images;
    REQUIRE(first.size(0) == 24);
    REQUIRE(second.size(0) == 24 + 2 * 2);
    std::vector<std::int64_t> places;
    for (std::int64_t i = 24; i < second.size(0); ++i)
      for (std::int64_t info = 0; info < 24; ++info)
        if (at::equal(second[i], first[info]))
          places.push_back(info);
    return places;
  };
  CHECK(kept_in(0) == kept_in(0));
  CHECK(kept_in(0) != kept_in(1));
}

TEST_CASE("the gradient norm of a row by a linear head follows from probabilities and features") {
  const auto net = model_named("linear", images, classes);
  const auto rows = drawn_data(12, images, classes);
  const auto weights = initial_weights(*net, 3);
  train_job job{.net = net, .start = weights_only(weights), .samples = rows_from(rows, 0, 12)};
  job.options = {.classes = {0, classes}, .result = training_result::row_norms};
  const std::vector<mneme::job> batch{{.id = {}, .request = job}};
  const auto outcome = make_executor("cpu")->run(batch).front();
  const auto& norms = std::get<train_output>(std::get<work_output>(outcome)).row_norms;
  const auto h = (rows->images.to(at::kFloat) * rows->scale[0] + rows->shift[0]).flatten(1).to(at::kDouble);
  const auto w = weights.narrow(0, 0, 64 * classes).view({classes, 64}).to(at::kDouble);
  const auto g = at::softmax(at::mm(h, w.t()) + weights.narrow(0, 64 * classes, classes), 1) -
                 at::one_hot(at::arange(12) % classes, classes);
  const auto expected = g.norm(2, {1}) * (h.square().sum(1) + 1.0).sqrt();
  for (std::int64_t row = 0; row < 12; ++row)
    CHECK_THAT(norms[row].item<double>(), Catch::Matchers::WithinRel(expected[row].item<double>(), 1e-5));
}

TEST_CASE("the image file of a run shows at most ten images per class, in a row each") {
  federation federated;
  CHECK(federated.server->sample_images().empty());
  federated.run();
  const auto sample_images = federated.server->sample_images();
  REQUIRE(sample_images.contains("samples"));
  CHECK((sample_images.at("samples").sizes() == at::IntArrayRef{1, 4 * 8, 3 * 8}));
}

TEST_CASE("settings that the generator does not support are refused with reasons") {
  const federation federated;
  auto setup = federated.setup();
  setup.public_rows = 0;
  const auto found_with = [&](const key_list& keys) {
    const auto method = strategy_named("osi-fl");
    give_keys(*method, keys.pairs);
    std::map<std::string, std::string> found;
    for (const auto& errors : method->check(setup))
      found[errors.where] = errors.text;
    return found;
  };
  auto found = found_with({});
  CHECK(found.size() == 1);
  CHECK_THAT(found["partition.public_share"], ContainsSubstring("rows that no client holds"));
  setup.transition = task_transition::staggered;
  setup.keep_task_share = 0.2;
  found = found_with({});
  CHECK_THAT(found["tasks.transition"], ContainsSubstring("expected \"round\""));
  CHECK_THAT(found["tasks.keep_task_share"], ContainsSubstring("sends one message per task"));
  setup.transition = task_transition::round;
  setup.keep_task_share = 0.0;
  found = found_with({{"condition", "sd77x768"}}); // needs no public rows but all parts
  CHECK(found.size() == 8);
  CHECK_THAT(found["strategy.denoiser"],
             ContainsSubstring("expected a file that tools/research/export/picture_parts.py"));
  found = found_with({{"condition", "sd77x768"}, {"match_moments", "true"}});
  CHECK_THAT(found["strategy.match_moments"], ContainsSubstring("no effect with a captioner"));
}
