// The second teacher of a training job: its features of the same rows, for any number of clients in a batch.
#include "tests/support/training_clients.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

/// Loss that regularizes features towards the mean of both teachers' features.
class pull_to_both final : public loss {
public:
  [[nodiscard]] std::string identity() const override { return "pull to both"; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override {
    auto out = (*cross_entropy_objective())(in);
    const auto away = in.features - (in.teachers[0].features + 3.0 * in.teachers[1].features) / 4.0; // [K, B, D]
    out.d_features = away * in.row_weight.unsqueeze(2);
    return out;
  }
};

std::vector<job> teacher_jobs(const model_ref& net) {
  auto jobs = clients_of(net, {.epochs = 2, .batch_rows = 3});
  const auto teacher = weights_only(initial_weights(*net, 50));
  for (std::uint64_t k = 0; k < jobs.size(); ++k) {
    auto& training = std::get<train_job>(jobs[k].request);
    training.objective = std::make_shared<pull_to_both>();
    training.add_teacher(teacher, {.features = true});
    training.add_teacher(weights_only(initial_weights(*net, 60 + k)), {.features = true});
  }
  return jobs;
}

} // namespace

TEST_CASE("clients of a batch use their own second teachers, bit by bit", "[teachers]") {
  for (const auto& net : {net_of("mlp", small, 4), net_of("cnn", small, 4)}) {
    INFO(net->identity());
    const auto jobs = teacher_jobs(net);
    const auto together = run_all(jobs);
    for (std::size_t k = 0; k < jobs.size(); ++k)
      CHECK(same_bits(weights_of(together[k]), weights_of(run_all({jobs[k]}).front())));
  }
}

TEST_CASE("a second teacher's outputs have the same bits cached and computed in each step", "[teachers]") {
  const auto jobs = teacher_jobs(net_of("mlp", small, 4));
  auto every_step = jobs;
  for (auto& single : every_step) // rows could be replayed, so nothing is cached
    std::get<train_job>(single.request).options.replay_rows = 1;
  const auto once = run_all(jobs), again = run_all(every_step);
  for (std::size_t k = 0; k < jobs.size(); ++k)
    CHECK(same_bits(weights_of(once[k]), weights_of(again[k])));
}

TEST_CASE("the second teacher's features differ from the first one's", "[teachers]") {
  auto jobs = teacher_jobs(net_of("mlp", small, 4));
  const auto own = run_all(jobs);
  for (auto& single : jobs) {
    auto& training = std::get<train_job>(single.request);
    training.teachers[1] = training.teachers[0];
  }
  CHECK_FALSE(same_bits(weights_of(own[0]), weights_of(run_all(jobs)[0])));
}

TEST_CASE("a missing second teacher, and weights of another net, are refused", "[teachers]") {
  auto jobs = teacher_jobs(net_of("mlp", small, 4));
  jobs.resize(1);
  auto& training = std::get<train_job>(jobs[0].request);
  training.teachers[1] = weights_only(at::zeros({3}));
  CHECK(std::get<std::string>(run_all(jobs)[0]).find("weights of a teacher are Float[3]") != std::string::npos);
  training.teachers[1] = nullptr;
  CHECK(std::get<std::string>(run_all(jobs)[0]).find("there are no weights of a teacher") != std::string::npos);
  training.teachers.pop_back();
  CHECK(std::get<std::string>(run_all(jobs)[0]).find("the job has weights of 1 teachers, but its options describe 2") !=
        std::string::npos);
}
