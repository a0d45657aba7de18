// Programs in a run: equal digests for any distribution of the work, slices that survive interruptions, and named
// errors.
#include "tests/support/generator_method.hpp" // before Catch2, whose CHECK must be the last definition

#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <malloc.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const auto dreams = made_scenario({{"seed", 2},
                                   {"data.shape", raw_toml("[3, 8, 8]")},
                                   {"data.classes", 4},
                                   {"data.rows", 120},
                                   {"tasks.count", 2},
                                   {"partition.kind", "dirichlet"},
                                   {"partition.beta", 0.7},
                                   {"clients.count", 6},
                                   {"rounds.per_task", 3},
                                   {"rounds.cohort", 5},
                                   {"devices.dropout", 0.1},
                                   {"model.name", "resnet8"},
                                   {"training.batch", 8},
                                   {"training.learning_rate", 0.01},
                                   {"strategy.name", "dreaming"}});

const finished_run& reference() {
  static const auto run = run_toml(dreams, {.threads = 1});
  return run;
}

/// Fault of the program of client 2 or of the server in the second round.
class wrong final : public looped_program {
public:
  wrong(std::string fault, std::int64_t size) : fault_(std::move(fault)), size_(size) {}
  [[nodiscard]] std::string name() const override { return "doubling"; }
  [[nodiscard]] std::string identity() const override { return fault_; }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = flat_weights, .shape = {size_}}};
  }
  [[nodiscard]] std::int64_t stacked_bytes(const program_job&) const override { return 1; }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    const auto& weights = call.in.at(flat_weights);
    if (call.stream.index == 0)
      return {.tensors = {{flat_weights, weights}}};
    if (fault_ == "throws")
      throw std::runtime_error("cannot double");
    if (fault_ == "not-finite")
      return {.tensors = {{flat_weights, weights / 0.0 - weights / 0.0}}};
    if (fault_ == "shape")
      return {.tensors = {{flat_weights, weights.narrow(0, 0, size_ - 1)}}};
    return {.tensors = {{flat_weights, at::Tensor()}}};
  }

private:
  std::string fault_;
  std::int64_t size_;
};

/// FedAvg with a faulty program.
class faulty final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.text("fault", fault_, "throws, not-finite, shape, undefined");
    table.text("place", place_, "Where: at client 2, or in the server's task or step.");
  }
  [[nodiscard]] method_needs needs() const override { return {}; }
  void prepare(const method_setup& given) override {
    averaging_method::prepare(given);
    body_ = std::make_shared<const wrong>(fault_, given.net->size());
  }
  [[nodiscard]] program_job job_for(const tensors_ref& weights, const round_info& info, bool is_faulty) const {
    return {.body = body_, .in = weights, .stream = {.index = is_faulty && info.round.value == 1 ? 1U : 0U}};
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    auto inner = averaging_method::client_round(ctx, in);
    auto result = co_await inner;
    auto doubling = ctx.run(job_for(result.upload, in.info, place_ == "client" && ctx.self() == client_id{2}));
    auto doubled = co_await doubling;
    result.upload = doubled.out;
    co_return result;
  }
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

private:
  friend class faulty_server;
  std::string fault_;
  std::string place_ = "client";
  program_ref body_;
};

class faulty_server final : public averaging_server {
public:
  faulty_server(const faulty& method, const method_setup& setup) : averaging_server(setup), method_(method) {}
  task<task_plan> open_task(server_context& ctx, const round_info&) override {
    auto doubling = ctx.run(method_.job_for(weights_only(weights()), {.round = {1}}, method_.place_ == "task"));
    auto doubled = co_await doubling;
    set_weights(doubled.out->at(flat_weights));
    co_return task_plan{};
  }
  task<void> close_round(server_context& ctx, const round_info& info) override {
    average();
    auto doubling = ctx.run(method_.job_for(weights_only(weights()), info, method_.place_ == "step"));
    auto doubled = co_await doubling;
    set_weights(doubled.out->at(flat_weights));
  }

private:
  const faulty& method_;
};

std::unique_ptr<server_half> faulty::make_server() const { return std::make_unique<faulty_server>(*this, setup()); }

const strategy_registration faulty_line{
    {.name = "faulty", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<faulty>();
     }}};

/// Resident memory of this process in bytes.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

} // namespace

TEST_CASE("a method with programs has one digest for all threads, workers, widths and shards") {
  REQUIRE(reference().summary.status == "done");
  CHECK(reference().summary.dropped > 0);
  const auto check = [](const overrides& over, std::int64_t threads) {
    const auto run = run_toml(dreams, {.over = over, .threads = threads});
    CHECK(run.summary.run_digest == reference().summary.run_digest);
    CHECK(run.model == reference().model);
  };
  check({}, 2);
  check({}, 4);
  check({{"worker.fused_clients_max", "1"}}, 1);
  check({{"worker.fused_clients_max", "3"}, {"worker.count", "3"}}, 2);
  check({{"worker.shards", "3"}, {"worker.lookahead_memory", "\"64 KiB\""}}, 2);
}

TEST_CASE("generated rows are used for training, and their bytes count as downloads") {
  const auto none = run_toml(dreams, {.over = {{"strategy.name", "\"fedavg\""}}});
  const auto larger = run_toml(dreams, {.over = {{"strategy.images", "9"}}});
  const auto floats = run_toml(dreams, {.over = {{"strategy.as_bytes", "false"}}});
  for (const auto* other : {&none, &larger, &floats})
    CHECK(other->summary.run_digest != reference().summary.run_digest);
  // Images of two generators and their labels, for all clients of all rounds but the first.
  const auto pixels = 3 * 8 * 8, label = 8;
  const auto with_rows =
      (reference().summary.download_bytes - none.summary.download_bytes) / (2 * 8 * (pixels + label));
  CHECK(with_rows == (larger.summary.download_bytes - none.summary.download_bytes) / (2 * 9 * (pixels + label)));
  CHECK(with_rows == (floats.summary.download_bytes - none.summary.download_bytes) / (2 * 8 * (4 * pixels + label)));
  CHECK((with_rows > 20 && with_rows <= 25)); // five rounds of five clients, except those without rows
}

TEST_CASE("a method with programs resumes from any event with an equal digest") {
  const workshop shop(dreams.with({{"checkpoint.force", true}}));
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(whole.run_digest == reference().summary.run_digest);
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 9}, workers::others) > 5);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
}

TEST_CASE("an interrupted program resumes with its next slice") {
  const workshop shop(dreams.with({{"checkpoint.force", true}, {"worker.fused_clients_max", 1}}));
  auto& slices = slice_counter::slices;
  slices = 0;
  const auto whole = shop.run("whole", {.threads = 1});
  const auto slices_of_run = slices.load();
  int kept = 0;
  for (const std::int64_t after : {1, 2, 3, 11, 12, 14, 19, 25, 29, 33}) { // in programs of clients and of the server
    CAPTURE(after);
    const auto name = "interrupted after " + std::to_string(after);
    slices = 0;
    slice_counter::interrupts = 0;
    slice_counter::interrupts_after = after;
    const auto early = shop.run(name, {.threads = 1, .interrupts = &slice_counter::interrupts});
    slice_counter::interrupts_after = -1;
    CHECK(early.status == "interrupted");
    CHECK(early.resume_from == shop.path(name).string());
    CHECK(slices == after); // no slice is computed twice
    kept += fs::exists(shop.path(name) / "checkpoint" / "programs") ? 1 : 0;
    const auto again = shop.resume(name, {.threads = 2});
    CHECK(again.status == "done");
    CHECK(again.run_digest == whole.run_digest);
    // Finished programs of an unfinished step or wave run again. Unfinished programs resume.
    CHECK(slices <= slices_of_run + 2 * 5 + 2 * generator_training::slices);
    check_equal_files(shop.path("whole"), shop.path(name), workers::others);
    CHECK_FALSE(fs::exists(shop.path(name) / "checkpoint" / "programs"));
  }
  CHECK(kept >= 6); // the other interruptions came after a program's last slice
}

TEST_CASE("interrupted client programs resume in asynchronous runs") {
  const workshop shop(dreams.with(
      {{"checkpoint.force", true}, {"rounds.mode", "async"}, {"rounds.concurrency", 5}, {"rounds.buffer", 3}}));
  const auto whole = shop.run("whole", {.threads = 1});
  REQUIRE(whole.status == "done");
  for (const std::int64_t after : {1, 5, 12, 23}) {
    CAPTURE(after);
    const auto name = "interrupted after " + std::to_string(after);
    slice_counter::slices = 0;
    slice_counter::interrupts = 0;
    slice_counter::interrupts_after = after;
    const auto early = shop.run(name, {.threads = 1, .interrupts = &slice_counter::interrupts});
    slice_counter::interrupts_after = -1;
    CHECK(early.status == "interrupted");
    CHECK(shop.resume(name, {.threads = 2}).run_digest == whole.run_digest);
    check_equal_files(shop.path("whole"), shop.path(name), workers::others);
  }
}

TEST_CASE("a mistake in a program ends the run, names client, round and job, and keeps the records") {
  const auto failed = [](const char* fault, const char* place) {
    return run_toml(dreams, {.over = {{"strategy.name", "\"faulty\""},
                                      {"model.name", "\"linear\""},
                                      {"devices.dropout", "0.0"},
                                      {"rounds.cohort", "6"},
                                      {"strategy.fault", fault},
                                      {"strategy.place", place}}});
  };
  const std::vector<std::pair<const char*, const char*>> faults{
      {"throws", "program 'doubling': cannot double"},
      {"not-finite", "program 'doubling': 'weights' has 772 values of 772 that are not finite"},
      {"shape", "program 'doubling': 'weights' has the shape [771], but its outcome() declares [772]"},
      {"undefined", "program 'doubling': 'weights' is an undefined tensor"}};
  for (const auto& [fault, text] : faults) {
    CAPTURE(fault);
    const auto client = failed(fault, "client"), server = failed(fault, "step"), opening = failed(fault, "task");
    for (const auto* run : {&client, &server, &opening}) {
      CHECK(run->summary.status == "failed");
      CHECK_THAT(run->summary.error, ContainsSubstring(text));
      CHECK(std::count(run->metrics.begin(), run->metrics.end(), '\n') == (run == &opening ? 0 : 1));
    }
    CHECK_THAT(client.summary.error, ContainsSubstring("client 2, round 2, job ") && ContainsSubstring(".1.0: "));
    CHECK_THAT(server.summary.error, ContainsSubstring("server, server step, round 2, job 0.0: "));
    CHECK_THAT(opening.summary.error, ContainsSubstring("server, server step, round 1, job 0.0: "));
  }
}

TEST_CASE("a thousand rounds of ten thousand generated images need no more memory than ten rounds", "[slow]") {
  const auto made = dreams.with({{"data.shape", raw_toml("[3, 16, 16]")},
                                 {"data.rows", 8},
                                 {"tasks.kind", "single"},
                                 {"tasks.count", 1},
                                 {"partition.kind", "iid"},
                                 {"clients.count", 2},
                                 {"rounds.cohort", 2},
                                 {"model.name", "linear"},
                                 {"training.batch", 512},
                                 {"evaluation.every", 0},
                                 {"checkpoint.every", 0},
                                 {"strategy.images", 5000}});
  ::mallopt(M_MMAP_THRESHOLD, 1 << 16); // free() returns memory immediately, so that only live memory is measured
  (void)run_toml(made, {.over = {{"rounds.per_task", "10"}}});
  const auto after_ten = resident_bytes();
  const auto run = run_toml(made, {.over = {{"rounds.per_task", "1000"}}});
  CHECK(run.summary.status == "done");
  const auto image_bytes = 10'000 * 3 * 16 * 16;
  INFO(after_ten << " -> " << resident_bytes());
  CHECK(resident_bytes() < after_ten + 4 * image_bytes); // a thousand rounds of them would be 7.7 GB
  CHECK(run.summary.peak_rss_bytes < after_ten + 20 * image_bytes);
}
