// Planted differences are located: an element of one upload, the order of a sum, the random stream of one client.
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "strategies/shared/averaging.hpp"
#include "tests/support/interrupted_runs.hpp"
#include "tools/study/run_difference.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fmt/format.h>
using namespace mneme;
using namespace mneme::test;

namespace {

enum class plant_kind { none, element, stream, order };
struct plant {
  plant_kind kind = plant_kind::none;
  std::int64_t round = 0, client = 0, row = 0; ///< The round counts from 1; the row is one of fc1.weight.
};

/// Averages in float32, in the order of arrival or in reverse.
class planted_server final : public averaging_server {
public:
  planted_server(const method_setup& setup, plant given) : averaging_server(setup), plant_(given) {}
  void fold(const delivery& in) override { uploads_.push_back(in.upload->at(flat_weights)); }
  task<void> close_round(server_context&, const round_info& info) override {
    if (plant_.kind == plant_kind::order && plant_.round == std::int64_t{info.round.value} + 1)
      std::reverse(uploads_.begin(), uploads_.end());
    auto sum = at::zeros_like(uploads_.front());
    for (const auto& upload : uploads_)
      sum = sum + upload * (1.0F / static_cast<float>(uploads_.size()));
    uploads_.clear();
    set_weights(sum);
    co_return;
  }

private:
  plant plant_;
  std::vector<at::Tensor> uploads_;
};

class planted final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.choice("plant", plant_.kind,
                 {{"none", plant_kind::none},
                  {"element", plant_kind::element},
                  {"stream", plant_kind::stream},
                  {"order", plant_kind::order}},
                 "What differs.");
    table.integer("plant_round", plant_.round, {.low = 0}, "Where.");
    table.integer("plant_client", plant_.client, {.low = 0}, "Where.");
    table.integer("plant_row", plant_.row, {.low = 0}, "Where.");
  }
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<planted_server>(setup(), plant_);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    const bool is_here = plant_.round == std::int64_t{in.info.round.value} + 1 && plant_.client == ctx.self().value;
    auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
    if (is_here && plant_.kind == plant_kind::stream)
      ++job.stream.seed;
    auto training = ctx.train(std::move(job));
    auto trained = co_await training;
    auto upload = trained.weights;
    if (is_here && plant_.kind == plant_kind::element)
      upload = weights_only(changed(upload->at(flat_weights)));
    co_return client_result{.upload = upload, .memory = nullptr, .rows = trained.rows_seen};
  }

private:
  /// Replaces column 1 of the row of fc1.weight by the next larger float.
  at::Tensor changed(const at::Tensor& flat) const {
    auto other = flat.clone();
    for (const auto& parameter : setup().net->layout())
      if (parameter.name == "fc1.weight") {
        auto& element = other.mutable_data_ptr<float>()[parameter.offset + plant_.row * parameter.shape[1] + 1];
        element = std::nextafter(element, INFINITY);
      }
    return other;
  }
  plant plant_;
};
const strategy_registration line{{.name = "planted", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
                                    return std::make_unique<planted>();
                                  }}};

overrides keys_of(const char* kind, std::int64_t round, std::int64_t client, std::int64_t row) {
  return {{"strategy.plant", kind},
          {"strategy.plant_round", std::to_string(round)},
          {"strategy.plant_client", std::to_string(client)},
          {"strategy.plant_row", std::to_string(row)}};
}

const auto scene = small_scenario({{"strategy.name", "planted"}, {"clients.count", 4}, {"rounds.cohort", 4}});

} // namespace

TEST_CASE("ten planted differences are located") {
  const workshop shop(scene);
  struct planted_case {
    const char* kind;
    std::int64_t round, client, row;
  };
  int number = 0;
  for (const auto& [kind, round, client, row] : {planted_case{"element", 1, 0, 0},
                                                 {"element", 2, 3, 5},
                                                 {"element", 3, 1, 15},
                                                 {"element", 4, 2, 9},
                                                 planted_case{"stream", 1, 2, 0},
                                                 {"stream", 3, 0, 0},
                                                 {"stream", 4, 3, 0},
                                                 planted_case{"order", 1, 0, 0},
                                                 {"order", 2, 0, 0},
                                                 {"order", 4, 0, 0}}) {
    CAPTURE(kind, round, client, row);
    const auto plain = fmt::format("plain{}", number), other = fmt::format("other{}", number);
    ++number;
    shop.run(plain, {.trace = true, .dumped_round = round});
    shop.run(other, {.trace = true, .dumped_round = round}, keys_of(kind, round, client, row));
    const auto difference = difference_of(shop.path(plain), shop.path(other));
    REQUIRE(difference);
    REQUIRE(difference->where);
    CHECK_FALSE(difference->is_same());
    const auto& where = *difference->where;
    CHECK(where.round == round);
    REQUIRE(where.element);
    CHECK(where.element->first != where.element->second);
    const bool is_order = std::string_view(kind) == "order";
    CHECK(where.part == (is_order ? differing_part::model : differing_part::upload));
    CHECK(where.client == (is_order ? "" : std::to_string(client)));
    CHECK(where.party == (is_order ? "" : "server"));
    if (std::string_view(kind) == "element") {
      CHECK(where.tensor == "fc1.weight");
      CHECK(where.element->name == fmt::format("[{}, 1]", row));
      CHECK(where.elements == 1);
    }
    CHECK(difference->settings.front().name == "strategy.plant");
    CHECK(difference->machines.empty());
  }
}

TEST_CASE("equal runs have no difference, and folders with fewer records give less detail") {
  const workshop shop(scene);
  shop.run("a");
  shop.run("b", {.threads = 1});
  shop.run("c", {}, keys_of("stream", 3, 1, 0));
  shop.run("d", {.trace = true});
  shop.run("e", {.trace = true}, keys_of("element", 3, 1, 2));
  const auto same = difference_of(shop.path("a"), shop.path("b"));
  REQUIRE(same);
  CHECK(same->is_same());
  CHECK(same->settings.empty());
  const auto by_step = difference_of(shop.path("a"), shop.path("c"));
  REQUIRE(by_step);
  CHECK(by_step->where->part == differing_part::model);
  CHECK(by_step->where->round == 3);
  CHECK(by_step->where->tensor.empty());
  const auto by_delivery = difference_of(shop.path("d"), shop.path("e"));
  REQUIRE(by_delivery);
  CHECK(by_delivery->where->part == differing_part::upload);
  CHECK(by_delivery->where->client == "1");
  CHECK(by_delivery->where->tensor == "weights");
  CHECK_FALSE(by_delivery->where->element);
}

TEST_CASE("a differing evaluation and a shorter run are reported") {
  const workshop shop(scene);
  shop.run("a");
  shop.run("b", {}, {{"evaluation.mask", "all"}});
  shop.run("c", {}, {{"tasks.count", "1"}, {"tasks.kind", "single"}});
  const auto mask = difference_of(shop.path("a"), shop.path("b"));
  REQUIRE(mask);
  CHECK(mask->where->part == differing_part::evaluation);
  CHECK(mask->where->round == 1);
  const auto shorter = difference_of(shop.path("a"), shop.path("c"));
  REQUIRE(shorter);
  CHECK(shorter->where->round == 1);
  CHECK_FALSE(difference_of(shop.path("a"), shop.path("none")));
}
