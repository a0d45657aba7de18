// FedCIL compared with its authors' program, step by step. tools/research/official/fed_cil.py wrote the reference
// values.
#include "strategies/fed_cil/feature_gan.hpp"
#include "tests/support/official_steps.hpp"
#include "tests/support/program_check.hpp"
#include <catch2/catch_approx.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

constexpr std::int64_t rows = 5;
using labels_list = std::vector<std::int64_t>;

/// The record's nets, and a game whose draws are the script's.
struct official_game {
  official_steps& both;
  feature_gan gan;
  gan_training with{};

  explicit official_game(official_steps& record) : both(record), gan(shape_of(record["settings"])) {
    const auto& given = record["settings"];
    with.seen_classes = {0, given["classes"]};
    with.any_fakes = true;
    with.rates.rate = given["rate"];
    with.rates.decay = given["decay"];
  }
  static gan_shape shape_of(const nlohmann::json& given) {
    gan_shape shape{.classes = given["classes"],
                    .latent = given["code"],
                    .generator_width = given["generator"],
                    .critic_width = given["critic"],
                    .overwrites = true};
    if (given.contains("features")) {
      shape.features = given["features"];
      return shape;
    }
    shape.image = given["image"];
    shape.features = shape.image[0] * shape.image[1] * shape.image[2];
    shape.scale.assign(static_cast<std::size_t>(shape.image[0]), 2.0F / 255.0F); // pixels in [-1, 1]
    shape.shift.assign(shape.scale.size(), -1.0F);
    return shape;
  }
  /// The official critic of images has two heads, for classes and for real or fake; ours has one.
  [[nodiscard]] bool is_joint_head(const parameter& entry) const { return gan.shape().of_images() && entry.head; }
  static std::string kind_of(const parameter& entry) { return entry.name.substr(entry.name.rfind('.')); }

  [[nodiscard]] at::Tensor values_in(const parameter& entry, const std::string& prefix) const {
    if (!is_joint_head(entry))
      return made_values(prefix + entry.name, entry.shape);
    auto classes = entry.shape, real = entry.shape;
    classes[0] -= 1;
    real[0] = 1;
    return at::cat({made_values(prefix + "critic.fc_aux" + kind_of(entry), classes),
                    made_values(prefix + "critic.fc" + kind_of(entry), real)});
  }
  [[nodiscard]] at::Tensor weights(const model& net, const std::string& prefix) const {
    auto flat = at::empty({net.size()}, at::kFloat);
    for (const auto& entry : net.layout())
      put_as_in_files(flat, entry, values_in(entry, prefix));
    return flat.unsqueeze(0);
  }
  /// A bias before a batch normalization has the gradient 0 in exact arithmetic. Rounding in float32 leaves a remainder
  /// that Adam amplifies.
  [[nodiscard]] bool is_taken_away(const std::string& name) const {
    return gan.shape().of_images() && name.starts_with("generator.") && name.ends_with(".bias") &&
           !name.starts_with("generator.bn") && name != "generator.deconv4.bias";
  }
  /// Compares both nets after a step with the official ones.
  void compare(const std::string& where, const gan_optimizers& players, const nlohmann::json& theirs) const {
    for (const auto& [net, flat] :
         {std::pair(gan.generator(), players.generator.weights()), std::pair(gan.critic(), players.critic.weights())})
      for (const auto& entry : net->layout()) {
        const auto ours = as_in_files(flat[0], entry);
        const auto beside = [&](const std::string& name, const at::Tensor& values) {
          both.weights(where + name, name, values, theirs[name], is_taken_away(name) ? 1e-3 : 1e-5);
        };
        if (is_joint_head(entry)) {
          beside("critic.fc_aux" + kind_of(entry), ours.narrow(0, 0, ours.size(0) - 1));
          beside("critic.fc" + kind_of(entry), ours.narrow(0, ours.size(0) - 1, 1));
        } else if (!entry.buffer) {
          beside(entry.name, ours);
        }
      }
  }
  [[nodiscard]] at::Tensor values(const std::string& name, at::IntArrayRef sizes) const {
    return at::tensor(formula(name, c10::multiply_integers(sizes)), at::kFloat).view(sizes);
  }
  [[nodiscard]] at::Tensor labels(const labels_list& listed) const {
    return at::tensor(listed, at::kLong).unsqueeze(0);
  }

  [[nodiscard]] labeled_rows named(const std::string& name, const nlohmann::json& among) const {
    labels_list listed;
    for (std::int64_t i = 0; i < rows; ++i)
      listed.push_back(among[static_cast<std::size_t>(i) % among.size()]);
    return {values(name, {1, rows, gan.shape().features}), labels(listed)};
  }
  /// Noise computed from a name, with the one-hot label in its first numbers.
  [[nodiscard]] labeled_codes coded(const std::string& name, std::size_t noise, const labels_list& listed) const {
    auto codes = 2 * values(fmt::format("{}.noise.{}", name, noise), {1, rows, gan.shape().code()});
    codes.narrow(2, 0, gan.shape().classes).zero_();
    codes.scatter_(2, labels(listed).unsqueeze(2), 1.0);
    return {codes, labels(listed)};
  }
  /// Like coded(), with the labels drawn with this noise.
  [[nodiscard]] labeled_codes drawn(const std::string& name, const nlohmann::json& record, std::size_t noise) const {
    return coded(name, noise, record["drawn_labels"][noise].get<labels_list>());
  }
  void play(const char* task, const std::string& name, bool replays) {
    const auto& record = both[task];
    gan_optimizers players{adam(weights(*gan.generator(), "client.")), adam(weights(*gan.critic(), "client."))};
    const std::size_t draws = replays ? 3 : 2;
    for (std::size_t step = 0; step < record["steps"].size(); ++step) {
      gan_draws given{.real = named(fmt::format("{}.real.{}", name, step), both["so_far"])};
      given.fakes = drawn(name, record, step * draws);
      if (replays) {
        given.old = named(fmt::format("{}.old.{}", name, step), both["past"]);
        given.old_fakes = drawn(name, record, step * draws + 1);
      }
      given.generator_inputs = drawn(name, record, step * draws + draws - 1);
      const auto losses = gan_step(gan, with, players, given);
      const auto& theirs = record["steps"][step];
      const auto where = fmt::format("{} step {} ", task, step + 1);
      both.term(where + "critic's loss", theirs["critic"], losses.critic);
      both.term(where + "generator's loss", theirs["generator"], losses.generator);
      compare(where, players, theirs["weights"]);
    }
  }
};

} // namespace

TEST_CASE("FedCIL's clients step like the official code's, with and without replayed rows", "[official][fed-cil]") {
  official_steps both("fed_cil/steps");
  official_game game(both);
  game.play("first_task", "first", false);
  game.play("later_task", "later", true);
}

TEST_CASE("FedCIL's nets of images and their steps equal the official code's", "[official][fed-cil]") {
  official_steps both("fed_cil/image_steps");
  official_game game(both);
  game.play("first_task", "first", false);
  game.play("later_task", "later", true);
}

TEST_CASE("FedCIL's server consolidates like the official code's", "[official][fed-cil]") {
  official_steps both("fed_cil/consolidation");
  official_game game(both);
  gan_optimizers server{adam(game.weights(*game.gan.generator(), "server.")),
                        adam(game.weights(*game.gan.critic(), "server."))};
  const auto& drawn = both["drawn_labels"];
  const auto& places = both["places"];
  std::size_t labels = 0, noise = 0, place = 0;
  const auto next = [&] { return game.coded("consolidated", noise++, drawn[labels++].get<labels_list>()); };
  const auto pooled = [&](const char* generator) { // rows of both users' generators, then the selected ones
    std::vector<at::Tensor> features, listed;
    for (const std::string user : {"first.", "second."}) {
      const auto codes = next();
      features.push_back(game.gan.rows(game.weights(*game.gan.generator(), user + generator), codes.codes));
      listed.push_back(codes.labels);
    }
    labels_list taken;
    for (std::int64_t i = 0; i < rows; ++i)
      taken.push_back(places[place++]);
    const auto where = at::tensor(taken, at::kLong);
    const labeled_rows batch{at::cat(features, 1).index_select(1, where), at::cat(listed, 1).index_select(1, where)};
    CHECK(at::equal(batch.labels, game.labels(drawn[labels++].get<labels_list>())));
    return batch;
  };
  for (std::size_t step = 0; step < both["steps"].size(); ++step) {
    gan_draws given{.real = pooled("present.")};
    given.old = pooled("last.");
    given.fakes = next();
    given.old_fakes = next();
    given.generator_inputs = next();
    const auto losses = gan_step(game.gan, game.with, server, given);
    const auto where = fmt::format("consolidation step {} ", step + 1);
    both.term(where + "critic's loss", both["steps"][step]["critic"], losses.critic);
    both.term(where + "generator's loss", both["steps"][step]["generator"], losses.generator);
  }
  game.compare("consolidation ", server, both["weights"]);
}

TEST_CASE("FedCIL's consistency terms equal the official code's", "[official][fed-cil]") {
  official_steps both("fed_cil/steps");
  official_game game(both);
  const auto& record = both["consistency"];
  const auto server = game.weights(*game.gan.generator(), "server.");
  gan_draws given{.real = game.named("agreed.real", both["so_far"])};
  given.fakes = given.generator_inputs = game.drawn("agreed", record, 0);
  const auto real_labels = given.real.labels[0];
  const labels_list listed(real_labels.const_data_ptr<std::int64_t>(),
                           real_labels.const_data_ptr<std::int64_t>() + rows);
  const auto of_server = [&](const labeled_codes& coded) {
    return labeled_rows{game.gan.rows(server, coded.codes), coded.labels};
  };
  const auto any = record["drawn_labels"][1].get<labels_list>();
  given.server = of_server(game.coded("agreed", 1, listed));
  given.server_any = of_server(game.coded("agreed", 2, any));
  given.own_any = game.coded("agreed", 3, any);
  game.with.consistency = 1.0;
  gan_optimizers players{adam(game.weights(*game.gan.generator(), "client.")),
                         adam(game.weights(*game.gan.critic(), "client."))};
  const auto losses = gan_step(game.gan, game.with, players, given);
  both.term("KL(server's rows || real rows)", record["with_real"], losses.with_real);
  both.term("KL(server's rows || own) + CE(server's rows)", record["with_own_and_classes"],
            losses.with_own + losses.of_classes);
}

TEST_CASE("the server selects rows of a pool like the official code", "[official][fed-cil]") {
  official_steps both("fed_cil/steps");
  const auto& record = both["balanced"];
  std::int64_t asked = 0; // labels in turn, and the last row of each, as the script draws
  const auto chosen = balanced({2, 0, 2, 1, 0, 2, 1, 2}, 6, [&asked](std::uint64_t below) {
    const auto turn = static_cast<std::uint64_t>(asked++);
    return turn % 2 == 0 ? turn / 2 % below : below - 1;
  });
  CHECK(chosen.labels == record["labels"].get<labels_list>());
  CHECK(chosen.places == record["rows"].get<labels_list>());
}

TEST_CASE("the divergence of server rows at (0.8, 0.2) from real rows at (0.5, 0.5) is 0.192745") {
  const feature_gan gan(
      {.features = 1, .classes = 2, .latent = 2, .generator_width = 1, .critic_width = 1, .overwrites = true});
  auto critic = at::zeros({1, gan.critic()->size()}, at::kFloat); // logits: (features, 0), no "real"
  for (const auto& entry : gan.critic()->layout()) {
    auto flat = critic[0];
    if (entry.name == "critic.fc1.weight")
      put_as_in_files(flat, entry, at::ones({1, 1}));
    if (entry.name == "critic.fc2.weight")
      put_as_in_files(flat, entry, floats({1.0F, 0.0F, 0.0F}).view({3, 1}));
  }
  const auto labels = at::zeros({1, 1}, at::kLong);
  const labeled_rows real{at::zeros({1, 1, 1}), labels}, server{at::full({1, 1, 1}, std::log(4.0F)), labels};
  const labeled_codes codes{at::zeros({1, 1, 2}), labels};
  gan_training with{.seen_classes = {0, 2}, .consistency = 1.0};
  gan_optimizers players{adam(at::zeros({1, gan.generator()->size()}, at::kFloat)), adam(critic)};
  const auto losses = gan_step(gan, with, players,
                               {.real = real,
                                .fakes = codes,
                                .generator_inputs = codes,
                                .server = server,
                                .server_any = server,
                                .own_any = codes});
  CHECK(losses.with_real == Approx(0.192745).epsilon(1e-5));
  CHECK(losses.of_classes == Approx(-std::log(0.8)).epsilon(1e-5));
}
