// Conformance of methods on a device: their tensors are on the device, also after loading a checkpoint.
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/fake_device.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_federation.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
using namespace mneme;
using namespace mneme::test;

namespace {

enum class disturbance {
  none,
  resume,   ///< each round resumes from a checkpoint in its middle
  rounding, ///< each weight of the first broadcast is changed by about one unit in the last place
};

/// `sent` with relative changes of 1e-7, as another order of sums makes them.
tensors_ref with_roundings(const tensors_ref& sent, std::uint64_t seed) {
  if (!sent)
    return sent;
  auto changed = std::make_shared<tensor_map>();
  for (const auto& [name, value] : *sent)
    changed->put(name, value.scalar_type() == at::kFloat
                           ? value * (1.0 + 1e-7 * drawn(value.sizes(), seed).to(value.device()))
                           : value);
  return changed;
}

/// A federation that runs task after task.
class short_run {
public:
  short_run(method_federation& in, const std::string& device, disturbance by)
      : in_(in), server_(in.method->make_server()), device_(device), disturbance_(by) {}

  void task(std::uint32_t number) {
    job_channel channel;
    server_context ctx(channel, &in_.central, &in_.made);
    in_.info = method_federation::place_in(number, rounds_begun_);
    in_.info.rounds_of_task = 2;
    const auto plan = run_step(server_->open_task(ctx, in_.info), channel, *in_.device);
    const auto rounds = plan.rounds.value_or(2);
    for (std::int64_t i = 0; i < rounds; ++i) {
      in_.info = method_federation::place_in(number, rounds_begun_++);
      in_.info.round_of_task = i;
      in_.info.rounds_of_task = rounds;
      round(ctx, channel);
    }
  }
  /// Summed loss of its model on the rows of task 0.
  [[nodiscard]] double loss() const {
    const std::vector<job> batch{{.request = evaluate_job{.learned = server_->predict(),
                                                          .samples = in_.central.of_task({0}),
                                                          .mask = {0, method_federation::classes_of_task}}}};
    const auto outcome = in_.device->run(batch);
    if (const auto* const reason = std::get_if<std::string>(&outcome[0]))
      FAIL(*reason);
    return std::get<evaluate_output>(std::get<work_output>(outcome[0])).loss_sum;
  }
  [[nodiscard]] at::Tensor learned() const { return server_->predict().weights->at(flat_weights).cpu(); }

private:
  void round(server_context& ctx, job_channel& channel) {
    auto sent = server_->open_round(in_.info);
    sent.info = in_.info;
    if (disturbance_ == disturbance::rounding && rounds_begun_ == 1)
      sent.weights = with_roundings(sent.weights, rounds_begun_);
    for (std::uint32_t c = 0; c < method_federation::clients; ++c) {
      if (disturbance_ == disturbance::resume && c == 1)
        resume();
      auto result = run_round(*in_.method, *in_.device, in_.work_for(c, sent, memories_[c]));
      if (result.memory)
        memories_[c] = result.memory;
      server_->fold({.assignment = {c},
                     .from = {c},
                     .started_from = in_.info.round,
                     .upload = result.upload,
                     .rows = result.rows,
                     .start = sent.weights});
    }
    run_step(server_->close_round(ctx, in_.info), channel, *in_.device);
  }
  void resume() {
    archive saved;
    server_->persist(saved);
    saved(memories_);
    auto loaded = loading_from(saved);
    loaded.onto(at::Device(device_));
    server_ = in_.method->make_server();
    server_->persist(loaded);
    loaded(memories_);
  }

  method_federation& in_;
  std::unique_ptr<server_half> server_;
  std::map<std::uint32_t, memory_ref> memories_{};
  std::string device_;
  std::uint32_t rounds_begun_ = 0;
  disturbance disturbance_;
};

struct run_end {
  at::Tensor weights{};
  double loss = 0.0;
};

/// Keys with which a method's result on few rows is determined up to rounding. Batch norms over two equal rows divide
/// by the root of an epsilon, a Gram matrix of few rows has no inverse, each epoch of Adam amplifies rounding, and SGD
/// at a rate of 0.05 overshoots with Fed-CPrompt's large factor.
std::vector<std::pair<std::string, std::string>> steady(const std::string& method) {
  if (method == "stsa")
    return {{"ridge", "1"}};
  if (method == "central-rehearsal")
    return {{"vee_epochs", "1"}};
  if (method == "fed-cprompt")
    return {{"contrast", "0.001"}};
  if (method.starts_with("split-") || method == "fedhaf" || method == "fed-lwf-2t")
    return {{"batch_norm", "false"}};
  return {};
}

run_end after_two_tasks(const std::string& method, const std::string& device, disturbance by = disturbance::none) {
  method_federation federated(method, steady(method), device);
  short_run run(federated, device, by);
  run.task(0);
  run.task(1);
  return {.weights = run.learned(), .loss = run.loss()};
}

/// Result on the host, which two tests compare with others.
const run_end& on_host(const std::string& method) {
  static std::map<std::string, run_end> known;
  const auto found = known.find(method);
  return found != known.end() ? found->second : known.emplace(method, after_two_tasks(method, "cpu")).first->second;
}

} // namespace

TEST_CASE("a device computes gradients after the host has computed some") {
  auto on_host = at::ones({2}).requires_grad_();
  (on_host * on_host).sum().backward();
  const stand_in_device device;
  auto there = at::ones({2}).to(at::Device(device.name)).requires_grad_();
  (there * there).sum().backward();
  CHECK(at::equal(there.grad().cpu(), on_host.grad()));
}

TEST_CASE("a method on a device agrees with the host, also after loading a checkpoint") {
  const stand_in_device here;
  for (const auto& entry : strategies())
    DYNAMIC_SECTION(entry.name) {
      const auto ours = after_two_tasks(entry.name, stand_in_device::name),
                 again = after_two_tasks(entry.name, stand_in_device::name, disturbance::resume);
      const auto& twin = on_host(entry.name);
      CHECK(same_bits(ours.weights, again.weights));
      CHECK(ours.loss == again.loss);
      const auto farthest = (ours.weights - twin.weights).abs().argmax().item<std::int64_t>();
      CAPTURE(farthest, ours.weights[farthest].item<float>(), twin.weights[farthest].item<float>());
      // Sums are in another order, and Adam divides by roots of small moments.
      CHECK(largest_difference(ours.weights, twin.weights) < 5e-3);
      CHECK((ours.weights - twin.weights).abs().mean().item<double>() < 2e-5);
      CHECK(std::abs(ours.loss - twin.loss) < 1e-3 * (1.0 + twin.loss));
    }
}

TEST_CASE("rounding errors stay small in the runs that are compared with a device", "[conditioning]") {
  // A relative change of 1e-7 grows to 2e-4 with Fed-CPrompt's usual contrast, with others to at most 3e-6.
  for (const auto& entry : strategies())
    DYNAMIC_SECTION(entry.name) {
      const auto& plain = on_host(entry.name);
      const auto rounded = after_two_tasks(entry.name, "cpu", disturbance::rounding);
      CHECK(largest_difference(plain.weights, rounded.weights) < 5e-5);
      CHECK(std::abs(plain.loss - rounded.loss) < 1e-5 * (1.0 + plain.loss));
    }
}

TEST_CASE("the emulated device refuses operations that a CUDA device refuses") {
  const stand_in_device here;
  const auto ours = at::arange(6, at::kFloat).to(at::Device(stand_in_device::name));
  CHECK_THROWS(ours + at::ones({6}));
  CHECK((ours + at::ones({})).sum().item<float>() == 21.0F); // a number from the host
  CHECK(ours.view({2, 3}).select(1, 2).cpu().equal(at::tensor({2.0F, 5.0F})));
  if (!stand_in_device::has_closed_memory())
    SKIP("this machine has no protection keys");
  const auto reader = fork(); // NOLINT: it only reads and ends
  if (reader == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    _exit(ours.const_data_ptr<float>()[1] == 1.0F ? 0 : 1);
  }
  int status = 0;
  waitpid(reader, &status, 0);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("a tensor saved on a device is loaded to the host or to a given device") {
  const stand_in_device here;
  tensor_map both;
  both.put("host", at::ones({2}));
  both.put("device", at::full({3}, 7.0F).to(at::Device(stand_in_device::name)));
  archive saved;
  saved(both);
  const auto loaded = [&](bool onto) {
    tensor_map read;
    auto bytes = loading_from(saved);
    if (onto)
      bytes.onto(at::Device(stand_in_device::name));
    bytes(read).expect_end();
    return read;
  };
  CHECK(loaded(false).at("device").is_cpu());
  const auto placed = loaded(true);
  CHECK(placed.at("host").is_cpu());
  CHECK(placed.at("device").device().str() == stand_in_device::name);
  CHECK(placed.at("device").cpu().equal(at::full({3}, 7.0F)));
}
