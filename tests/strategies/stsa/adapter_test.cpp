// STSA with task 1 trained by another method: results, uploads, and refused settings.
#include "runtime/models/low_rank_vit.hpp"
#include "tests/strategies/stsa/stsa_run.hpp"
#include "tests/support/small_prompted_vit.hpp"
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::stsa_case;

namespace {

constexpr std::uint32_t adapted_tasks = 2, adapted_clients = 2;
const std::vector<class_range> adapted_classes{{0, 3}, {3, 6}};
const key_list small_statistics{{"adaptation_rounds", "2"}, {"projection_width", "30"}, {"ridge", "3.5"}};

/// A method by keys of [strategy], and the net that it needs.
struct stsa_with_net {
  std::unique_ptr<strategy> method;
  model_ref net;

  [[nodiscard]] method_setup setup() const {
    auto setup = setup_of_run(net, features, adapted_tasks);
    setup.training.optimizer = optimizer_kind::adam;
    setup.training.epochs = 1;
    setup.training.batch = 16;
    setup.training.learning_rate = 0.01;
    setup.weighting = upload_weighting::uniform;
    setup.task_classes = adapted_classes;
    setup.clients = adapted_clients;
    return setup;
  }
};

stsa_with_net stsa_by(const key_list& keys) {
  auto method = strategy_named("stsa");
  give_keys(*method, small_statistics.pairs);
  give_keys(*method, keys.pairs);
  const auto net = row_prompted_vit(method->needs().prompts, adapted_classes, features);
  return {.method = std::move(method), .net = net};
}

/// Bytes of an upload.
std::int64_t bytes_of(const tensor_map& upload) {
  std::int64_t bytes = 0;
  for (const auto& [name, value] : upload)
    bytes += static_cast<std::int64_t>(value.nbytes());
  return bytes;
}

/// A run of two tasks and two clients, each of which holds every second row of the task.
struct adapted_run {
  adapted_run(const stsa_with_net& with, const method_setup& setup) {
    CHECK(with.method->check(setup).empty());
    with.method->prepare(setup);
    const auto server = with.method->make_server();
    const auto device = make_executor("cpu", std::make_shared<feature_store>());
    const auto source = drawn_rows_of_classes();
    std::uint32_t round = 0;
    for (std::uint32_t t = 0; t < adapted_tasks; ++t) {
      job_channel channel;
      server_context ctx(channel);
      auto info = class_task(t, classes / adapted_tasks);
      info.round = {round};
      info.rounds_of_task = run_step(server->open_task(ctx, info), channel, *device).rounds.value();
      rounds.push_back(info.rounds_of_task);
      for (std::int64_t r = 0; r < info.rounds_of_task; ++r) {
        info.round = {round++};
        info.round_of_task = r;
        auto in = server->open_round(info);
        in.info = info;
        const auto sent = std::make_shared<const broadcast>(in);
        for (std::uint32_t c = 0; c < adapted_clients; ++c) {
          std::vector<std::int64_t> held;
          for (std::int64_t row = 0; row < rows; ++row)
            if (adapted_classes[t].low <= row % classes && row % classes < adapted_classes[t].high &&
                row / classes % adapted_clients == c)
              held.push_back(row);
          const assignment assigned{
              .id = {c}, .client = {c}, .in = sent, .samples = view_of(source, held), .seed = 5, .visit = round};
          const auto result = run_round(*with.method, *device, assigned);
          server->fold({.assignment = {c},
                        .from = {c},
                        .started_from = info.round,
                        .upload = result.upload,
                        .rows = result.rows});
          uploads.push_back(result.upload);
        }
        run_step(server->close_round(ctx, info), channel, *device);
      }
      learned.push_back(server->predict());
    }
  }
  [[nodiscard]] at::Tensor readout() const { return learned.back().readout.to(at::kDouble); }

  std::vector<std::int64_t> rounds; // by task
  std::vector<tensors_ref> uploads; // by round and client
  std::vector<predictor> learned;   // after each task
};

adapted_run adapted_by(const std::string& adapter) {
  const auto with = stsa_by({{"adapter", adapter}});
  return {with, with.setup()};
}

std::vector<std::string> names_of(const tensor_map& upload) {
  std::vector<std::string> names;
  for (const auto& [name, value] : upload)
    names.push_back(name);
  return names;
}

/// First error about a net, as "where: text"; "" if there is none.
std::string complaint_of_stsa(const key_list& keys, const model_ref& net = nullptr) {
  const auto with = stsa_by(keys);
  auto setup = with.setup();
  if (net)
    setup.net = net;
  const auto errors = with.method->check(setup);
  return errors.empty() ? "" : errors.front().where + ": " + errors.front().text;
}

} // namespace

TEST_CASE("an untrained low-rank adapter leaves STSA on the transformer unchanged", "[stsa][pilora]") {
  const auto adapted = stsa_by({{"adapter", "pilora"}}), plain = stsa_by({{"adaptation", "none"}});
  auto untrained = adapted.setup();
  untrained.training.epochs = 0; // B stays 0
  auto as_it_is = plain.setup();
  auto flat = as_it_is.initial->at(flat_weights).clone();
  for (const auto& entry : plain.net->layout())
    for (const auto& other : adapted.net->layout())
      if (entry.name == other.name)
        put_as_in_files(flat, entry, as_in_files(untrained.initial->at(flat_weights), other));
  as_it_is.initial = weights_only(flat);
  const auto expected = adapted_run(plain, as_it_is).readout();
  CHECK(relative(adapted_run(adapted, untrained).readout(), expected) < 1e-4);
  CHECK(relative(adapted_by("pilora").readout(), expected) > 1e-3); // with a trained part
}

TEST_CASE("an adapting method affects STSA only by its weights after task 1", "[stsa][pilora]") {
  for (const std::string adapter : {"pilora", "fed-cprompt"}) {
    INFO(adapter);
    const auto adapted = stsa_by({{"adapter", adapter}});
    const adapted_run run(adapted, adapted.setup());
    CHECK(run.rounds == std::vector<std::int64_t>{3, 1});
    CHECK(run.learned[0].weights == run.learned[1].weights);

    const auto frozen = stsa_by({{"adaptation", "none"}});
    auto given = adapted.setup();
    CHECK_FALSE(at::equal(given.initial->at(flat_weights), run.learned[0].weights->at(flat_weights)));
    given.initial = run.learned[0].weights;
    CHECK(at::equal(adapted_run(frozen, given).readout(), run.readout()));
  }
}

TEST_CASE("in task 1 the adapting method's uploads are sent, afterwards statistics of one size", "[stsa][pilora]") {
  const auto low_rank = adapted_by("pilora"), prompts = adapted_by("fed-cprompt");
  REQUIRE(low_rank.uploads.size() == 8);
  REQUIRE(prompts.uploads.size() == 8);
  CHECK(names_of(*low_rank.uploads[0]) == std::vector<std::string>{"centers", "lora.0.query.down", "lora.0.query.up",
                                                                   "lora.0.value.down", "lora.0.value.up", "means",
                                                                   "means.of"});
  CHECK(prompts.uploads[0]->find("prompts.0.values"));
  for (std::size_t i = 4; i < 8; ++i) {
    CHECK(names_of(*low_rank.uploads[i]) == std::vector<std::string>{"gram", "sums"});
    CHECK(bytes_of(*low_rank.uploads[i]) == bytes_of(*prompts.uploads[i]));
  }
}

TEST_CASE("STSA's key sets the rate of PILoRA's low-rank adapter", "[stsa][pilora]") {
  const auto first_part = [](const std::string& rate) {
    const auto with = stsa_by({{"adapter", "pilora"}, {"adapter_rate", rate}});
    return adapted_run(with, with.setup()).uploads[0]->at("lora.0.query.up");
  };
  const auto by_default = first_part("0");
  CHECK(at::equal(first_part("1e-5"), by_default)); // PILoRA's own
  // One step in the same direction: B, which starts at zero, is as large as the rate.
  CHECK(relative(first_part("1e-4"), 10.0 * by_default) < 0.1);
}

TEST_CASE("methods that cannot adapt a net before statistics are refused", "[stsa][pilora]") {
  const auto linear = model_named("linear", {1, 1, features}, classes);
  for (const std::string adapter : {"pilora", "fed-cprompt"}) {
    INFO(adapter);
    CHECK(complaint_of_stsa({{"adapter", adapter}}).empty());
    CHECK(complaint_of_stsa({{"adapter", adapter}}, linear).starts_with("model.name: "));
    CHECK(complaint_of_stsa({{"adapter", adapter}, {"adaptation", "none"}}).starts_with("strategy.adapter: "));
  }
  CHECK(
      complaint_of_stsa({{"adapter", "fed-cprompt"}, {"adapter_rate", "0.1"}}).starts_with("strategy.adapter_rate: "));
}
