// What conformance asks of every method, on a device: what it computes with lies there, and what comes from a checkpoint
// or from the host is brought there.
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include "tests/support/learning.hpp"
#include "tests/support/method_federation.hpp"
#include "tests/support/stand_in_device.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Two tasks of two rounds, and what its clients remember.
class short_run {
public:
  explicit short_run(method_federation& in) : in_(in), server_(in.method->make_server()) {}

  /// Opens the round, lets every client train and folds what it sends; the second upload after a checkpoint, where asked.
  void round(std::uint32_t task, std::uint32_t number, bool resumed) {
    job_desk desk;
    server_context ctx(desk, &in_.central, &in_.made);
    in_.place = method_federation::place_in(task, number);
    if (number % 2 == 0) {
      const auto plan = run_step(server_->open_task(ctx, in_.place), desk, *in_.device);
      rounds_ = plan.rounds.value_or(2);
    }
    in_.place.rounds_of_task = rounds_;
    auto sent = server_->open_round(in_.place);
    sent.place = in_.place;
    for (std::uint32_t c = 0; c < method_federation::clients; ++c) {
      if (resumed && c == 1)
        resume();
      auto result = run_round(*in_.method, *in_.device, in_.work_for(c, sent, memories_[c]));
      if (result.memory)
        memories_[c] = result.memory;
      server_->fold({.assignment = {c},
                     .from = {c},
                     .started_from = {},
                     .upload = result.upload,
                     .rows = result.rows,
                     .start = sent.weights});
    }
    run_step(server_->close_round(ctx, in_.place), desk, *in_.device);
  }
  /// As after a kill: what lay on the device is brought there again.
  void resume() {
    archive saved;
    server_->persist(saved);
    saved(memories_);
    auto loaded = loading_from(saved);
    loaded.onto(at::Device(stand_in_device::name));
    server_ = in_.method->make_server();
    server_->persist(loaded);
    loaded(memories_);
  }
  [[nodiscard]] at::Tensor learnt() const { return server_->predict().weights->at(flat_weights).cpu(); }
  /// The loss of its model on some rows.
  [[nodiscard]] double loss() const {
    const auto all = class_range{0, method_federation::classes_of_task};
    const std::vector<job> batch{{.request = evaluate_job{
                                      .learnt = server_->predict(),
                                      .samples = in_.central.of_task({0}),
                                      .mask = all}}};
    const auto outcome = in_.device->run(batch);
    if (const auto* const why = std::get_if<std::string>(&outcome[0]))
      FAIL(*why);
    return std::get<evaluate_output>(std::get<work_output>(outcome[0])).loss_sum;
  }

private:
  method_federation& in_;
  std::unique_ptr<server_half> server_;
  std::map<std::uint32_t, memory_ref> memories_{};
  std::int64_t rounds_ = 2;
};

} // namespace

TEST_CASE("a method computes on a device as on the host, and goes on there from a checkpoint") {
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    const auto learnt = [&](const std::string& device, bool resumed) {
      method_federation federated(entry.name);
      federated.device = make_executor(device);
      short_run run(federated);
      for (const std::uint32_t task : {0U, 1U})
        for (const std::uint32_t number : {0U, 1U})
          run.round(task, 2 * task + number, resumed);
      CHECK(std::isfinite(run.loss()));
      return run.learnt();
    };
    const stand_in_device here;
    const auto ours = learnt(stand_in_device::name, false), again = learnt(stand_in_device::name, true),
               twin = learnt("cpu", false);
    CHECK(same_bits(ours, again));
    WARN(entry.name << " " << largest_difference(ours, twin) << " " << (ours - twin).abs().mean().item<double>());
  }
}
