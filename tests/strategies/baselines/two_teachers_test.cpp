// FLwF-2T's loss compared with autograd in float64, and the teachers of a client.
#include "runtime/method/gradients.hpp"
#include "tests/strategies/shared/split_client.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::split_case;
using Catch::Matchers::WithinRel;

namespace {

/// Training of a client's second task, after a first in which it took part.
train_job second_task(const key_list& keys, bool took_part = true) {
  split_client client("fed-lwf-2t", keys);
  client.open(0);
  (void)client.round(0);
  if (!took_part)
    client.memory = nullptr;
  client.open(1);
  const auto jobs = jobs_of_kind<train_job>(client.jobs(1, client.sent(1)));
  REQUIRE(jobs.size() == 1);
  return jobs[0];
}

} // namespace

// L = a CE + b KD(own) + (1 - a - b) KD(server), both over the old classes at T and without the factor T^2.
TEST_CASE("the loss with two teachers and its gradient equal autograd in float64, without padding rows") {
  const double a = 0.5, b = 0.2, c = 0.3, T = 4.0;
  const auto job = second_task({{"label_weight", "0.5"}, {"own_weight", "0.2"}, {"temperature", "4"}});
  const auto logits = 3.0 * drawn({2, 4, 4}, 1), server = 3.0 * drawn({2, 4, 2}, 2), own = 3.0 * drawn({2, 4, 4}, 3);
  const auto labels = at::tensor({2, 3, 3, -1, 3, 2, 2, 2}, at::kLong).view({2, 4});
  const auto weight = at::tensor({1.0F / 3, 1.0F / 3, 1.0F / 3, 0.0F, 0.25F, 0.25F, 0.25F, 0.25F}).view({2, 4});
  const auto found = (*job.objective)({.logits = logits,
                                       .features = logits,
                                       .labels = labels,
                                       .row_weight = weight,
                                       .auxiliaries = {},
                                       .teachers = {{.logits = server}, {.logits = own.narrow(2, 0, 2)}}});
  for (std::int64_t k = 0; k < 2; ++k) {
    const auto z = leaf_of(logits[k].to(at::kDouble));
    auto value = at::zeros({}, at::kDouble);
    const std::int64_t real = k == 0 ? 3 : 4;
    for (std::int64_t i = 0; i < real; ++i) {
      const auto divergence = [&](const at::Tensor& taught) {
        const auto log_p = at::log_softmax(taught.to(at::kDouble).narrow(0, 0, 2) / T, 0);
        return (log_p.exp() * (log_p - at::log_softmax(z[i].narrow(0, 0, 2) / T, 0))).sum();
      };
      const auto label = -at::log_softmax(z[i], 0)[labels[k][i].item<std::int64_t>()];
      value =
          value + (a * label + b * divergence(own[k][i]) + c * divergence(server[k][i])) / static_cast<double>(real);
    }
    CHECK_THAT(found.values[k].item<double>(), WithinRel(value.item<double>(), 1e-6));
    const auto slope = gradients_of(value, {z}).front();
    CHECK((found.d_logits[k].to(at::kDouble) - slope).abs().max().item<double>() < 1e-7);
  }
}

TEST_CASE("a client without an own model gives that teacher's weight to the server's") {
  const key_list keys{{"label_weight", "0.5"}, {"own_weight", "0.2"}, {"temperature", "4"}};
  CHECK(second_task(keys).objective->identity() == "two teachers 0.5 0.2 0.3 4 2");
  CHECK(second_task(keys, false).objective->identity() == "two teachers 0.5 0 0.5 4 2");
  CHECK((second_task(keys).options.teachers.at(0).classes == class_range{0, 2}));
}

TEST_CASE("the own teacher of a task is the model before it in all its rounds") {
  split_client client("fed-lwf-2t");
  client.open(0);
  (void)client.round(0);
  client.open(1);
  const auto asked = [&] {
    return jobs_of_kind<train_job>(client.jobs(1, client.sent(1))).at(0).teachers.at(1)->at(flat_weights);
  };
  const auto first = asked();
  CHECK(at::equal(first, client.memory->at("own_model")));
  (void)client.round(1);
  CHECK(at::equal(asked(), first));
}
