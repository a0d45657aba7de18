// PODNet: its loss terms by hand and compared with the official code, frozen bits, and tuned parts.
#include "strategies/baselines/proxy_rehearsal.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

const std::vector<std::vector<std::int64_t>> map_shapes{{6, 2, 5, 4}, {6, 3, 4, 4}, {6, 4, 2, 2}};

at::Tensor row(const std::vector<float>& values) { return at::tensor(values).unsqueeze(0); }
at::Tensor label(std::int64_t value) { return at::tensor({value}, at::kLong); }
at::Tensor pixels(const std::vector<float>& values) { return at::tensor(values).view({1, 1, 2, 2}); }

model_ref proxy_net(std::int64_t classes) {
  auto kind = kind_with("mlp", {});
  kind->set_head(head_kind::proxies);
  kind->set_proxies(2);
  return kind->build({1, 1, 5}, classes).value();
}

at::Tensor gradient_of_pooled(const at::Tensor& map, const at::Tensor& taught) {
  return results_of(map, [&](const at::Tensor& at) { return pooled_map_rows(at, taught); }).gradient;
}

} // namespace

TEST_CASE("NCA equals cross-entropy if the right class has the largest score, and is larger otherwise", "[podnet]") {
  const auto z = row({0.2F, 0.5F, -0.1F});
  CHECK_THAT(nca_rows(z, label(1)).item<double>(), WithinAbs(0.828390, 1e-6));
  const auto errors = results_of(z, [](const at::Tensor& at) { return nca_rows(at, label(0)); });
  CHECK_THAT(errors.values.item<double>(), WithinAbs(1.235627, 1e-6));
  CHECK(largest_difference_of(errors.gradient, row({-1, 0.784679F, 0.215321F})) < 1e-6);
  CHECK_THAT(nca_rows(z, label(2)).item<double>(), WithinAbs(1.608256, 1e-6));
}

TEST_CASE("pooled maps are compared by direction", "[podnet]") {
  const auto a = pixels({1, 2, 0, 1}), b = pixels({2, 1, 0, 1});
  CHECK_THAT(pooled_map_rows(a, b).item<double>(), WithinAbs(0.603555, 1e-6));
  CHECK(pooled_map_rows(a, a).item<double>() == 0.0);
  CHECK(gradient_of_pooled(a, a).abs().max().item<double>() == 0.0);
  CHECK_THAT(pooled_map_rows(pixels({1, 0, 0, 0}), pixels({0, 0, 0, 1})).item<double>(),
             WithinAbs(std::sqrt(2.0), 1e-6));
  CHECK(at::allclose(pooled_map_rows(a * -3.0, b), pooled_map_rows(a, b)));
  CHECK(at::isfinite(gradient_of_pooled(a * 0.0, b)).all().item<bool>());
}

TEST_CASE("features are compared by their angle", "[podnet]") {
  CHECK_THAT(cosine_rows(row({2, 0}), row({3, 0})).item<double>(), WithinAbs(1.0, 1e-7));
  CHECK_THAT(cosine_rows(row({2, 0}), row({0, 3})).item<double>(), WithinAbs(0.0, 1e-7));
  CHECK_THAT(cosine_rows(row({2, 0}), row({-3, 0})).item<double>(), WithinAbs(-1.0, 1e-7));
}

TEST_CASE("PODNet's loss terms equal the official code's", "[podnet]") {
  const auto record = golden_record("podnet/inclearn"), terms = record["terms"];
  const auto labels = labels_of(record["labels"]);
  const auto nca = results_of(formula_tensor("podnet.similarities", {6, 5}, 1.5), // scale 1.5
                              [&](const at::Tensor& z) { return nca_rows(z, labels); });
  CHECK_THAT(nca.values.mean().item<double>(), WithinAbs(terms["nca"]["value"].get<double>(), 1e-6));
  CHECK(largest_difference_of(nca.gradient * 1.5 / 6.0, listed_tensor(terms["nca"]["gradient"], {6, 5})) < 1e-6);
  const auto flat = results_of(formula_tensor("podnet.features", {6, 8}), [](const at::Tensor& x) {
    return 1.0 - cosine_rows(x, formula_tensor("podnet.old_features", {6, 8}));
  });
  CHECK_THAT(flat.values.mean().item<double>(), WithinAbs(terms["flat"]["value"].get<double>(), 1e-6));
  CHECK(largest_difference_of(flat.gradient / 6.0, listed_tensor(terms["flat"]["gradient"], {6, 8})) < 1e-6);
  double spatial = 0.0;
  for (std::size_t i = 0; i < map_shapes.size(); ++i) {
    const auto rows =
        results_of(formula_tensor("podnet.map" + std::to_string(i), map_shapes[i]), [&](const at::Tensor& map) {
          return pooled_map_rows(map, formula_tensor("podnet.old_map" + std::to_string(i), map_shapes[i]));
        });
    spatial += rows.values.mean().item<double>() / 3.0;
    CHECK(largest_difference_of(rows.gradient / 18.0, listed_tensor(terms["spatial"]["gradients"][i], map_shapes[i])) <
          1e-6);
  }
  CHECK_THAT(spatial, WithinAbs(terms["spatial"]["value"].get<double>(), 1e-6));
}

TEST_CASE("PODNet's head equals the official code's", "[podnet]") {
  const auto theirs = golden_record("podnet/inclearn")["terms"]["head"];
  auto kind = kind_with("linear", {});
  kind->set_head(head_kind::proxies);
  const auto net = kind->build({1, 1, 8}, 5).value();
  const auto weights = at::cat({formula_tensor("podnet.proxies", {400}), at::ones({1})}).unsqueeze(0);
  const auto inputs = formula_tensor("podnet.features", {1, 6, 1, 1, 8});
  tape kept;
  const training_mode training;
  const auto results = net->forward(weights, inputs, {0, 5}, &kept, &training);
  CHECK(largest_difference_of(results.logits, listed_tensor(theirs["logits"], {6, 5})) < 1e-6);
  auto gradients = at::zeros(weights.sizes());
  net->backward(weights, kept, {0, 5}, formula_tensor("podnet.d_logits", {1, 6, 5}), {}, {}, {gradients});
  CHECK(largest_difference_of(gradients[0].narrow(0, 0, 400), listed_tensor(theirs["d_proxies"], {400})) < 1e-6);
}

TEST_CASE("PODNet's whole loss equals the official code's", "[podnet]") {
  const auto record = golden_record("podnet/inclearn"), theirs = record["loss"];
  const rehearsing_client client("podnet", {3, 2}, {}, proxy_net(5));
  rehearsed_step step{.logits = formula_tensor("podnet.similarities", {6, 5}, 1.5), // sigma 1.5
                      .labels = labels_of(record["labels"]),
                      .features = formula_tensor("podnet.features", {6, 8}),
                      .taught = formula_tensor("podnet.old_features", {6, 8})};
  for (std::size_t i = 0; i < map_shapes.size(); ++i) {
    step.maps.push_back(formula_tensor("podnet.map" + std::to_string(i), map_shapes[i]));
    step.old_maps.push_back(formula_tensor("podnet.old_map" + std::to_string(i), map_shapes[i]));
  }
  const auto ours = step.loss_of(*client.training(1).objective);
  CHECK_THAT(ours.values.item<double>(), WithinAbs(theirs["value"].get<double>(), 2e-6));
  CHECK(largest_difference_of(ours.d_logits, listed_tensor(theirs["d_logits"], {6, 5})) < 1e-6);
  CHECK(largest_difference_of(ours.d_features, listed_tensor(theirs["d_features"], {6, 8})) < 1e-6);
  for (std::size_t i = 0; i < map_shapes.size(); ++i)
    CHECK(largest_difference_of(ours.d_maps[i], listed_tensor(theirs["d_maps"][i], map_shapes[i])) < 1e-6);
}

TEST_CASE("old proxies keep their bits until the head is tuned, and the body keeps them then", "[podnet]") {
  const auto net = proxy_net(4);
  const rehearsing_client client("podnet", {2, 2}, {{"memory", "8"}, {"tuning_epochs", "2"}}, net);
  const auto part = [&](const client_result& result, bool head) {
    for (const auto& entry : net->layout())
      if (head ? entry.head && !entry.whole : entry.name == "fc1.weight")
        return result.upload->at(flat_weights).narrow(0, entry.offset, head ? entry.size / 2 : entry.size);
    return at::Tensor{};
  };
  const auto earlier = client.round(client.work(client.sent(1, false), client.rows_of(0, 1, 5)));
  const auto last = client.round(client.work(client.sent(1, true), client.rows_of(0, 1, 5)));
  const client_result untouched{.upload = client.setup.initial};
  CHECK(at::equal(part(earlier, true), part(untouched, true)));
  CHECK_FALSE(at::equal(part(last, true), part(untouched, true)));
  CHECK(at::equal(part(earlier, false), part(last, false)));
  CHECK_FALSE(at::equal(part(earlier, false), part(untouched, false)));
  const auto jobs = jobs_of_kind<train_job>(
      jobs_of_round(*client.method, *client.device, client.work(client.sent(1, true), client.rows_of(0, 1, 5))));
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[1].samples.size() == 8); // two of each class
  CHECK(jobs[1].options.learning_rate == 0.05);
  CHECK(jobs[1].options.epochs == 2);
}

TEST_CASE("a net without maps is refused", "[podnet]") {
  const rehearsing_client client("podnet", {2, 2});
  const auto errors = client.method->check(client.setup);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "model.name");
}
