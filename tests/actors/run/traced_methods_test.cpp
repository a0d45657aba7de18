// Every method with traces of its clients: the check for traces that end, the dry run of `mneme validate --cost`, and
// the run.
#include "actors/run/dry_run.hpp"
#include "actors/run/load_run_context.hpp"
#include "strategies/shared/averaging.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Numbers of server steps and of computed server jobs.
struct server_calls {
  std::atomic<int> steps{0}, jobs{0};
};
server_calls counted;

tensor_map count_job(const tensor_map& /*in*/) {
  ++counted.jobs;
  return {};
}

/// Server that relies on guarantees of runs: a server step follows at least one fold, and every job returns a result.
/// It reads training rows and trains.
class demanding_server final : public averaging_server {
public:
  explicit demanding_server(const method_setup& setup) : averaging_server(setup) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (ctx.rows().of_task(info.task).size() == 0 || ctx.rows().of_enrolled(info.task).size() == 0)
      throw std::runtime_error("a task without rows");
    if (info.task.value > 0) {
      auto counting = ctx.compute({.name = "count", .run = &count_job, .in = std::make_shared<const tensor_map>()});
      auto done = co_await counting;
    }
    co_return task_plan{.rounds = 1};
  }
  void fold(const delivery& in) override {
    has_folded_ = true;
    averaging_server::fold(in);
  }
  task<void> close_round(server_context& /*ctx*/, const round_info& /*place*/) override {
    if (!std::exchange(has_folded_, false))
      throw std::runtime_error("a step without an upload");
    ++counted.steps;
    average();
    co_return;
  }

private:
  bool has_folded_ = false;
};

class demanding final : public averaging_method {
public:
  method_needs needs() const override { return {.upload_size_known = true, .server_trains_on_rows = true}; }
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<demanding_server>(setup()); }
};
const strategy_registration demanding_line{
    {.name = "demanding", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<demanding>();
     }}};

/// Server that cannot be created; a run reports the reason.
class broken_server final : public averaging_server {
public:
  explicit broken_server(const method_setup& setup) : averaging_server(setup) {}
  broadcast open_round(const round_info& /*place*/) override { throw std::runtime_error("no broadcast"); }
};
class broken final : public averaging_method {
public:
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<broken_server>(setup()); }
};
const strategy_registration broken_line{
    {.name = "broken-server", .summary = "for tests", .make = []() -> std::unique_ptr<strategy> {
       return std::make_unique<broken>();
     }}};

enum class trace_kind { availability, links };

/// Folder with traces of `clients` clients that end after `seconds` virtual seconds.
class traces {
public:
  traces(std::int64_t clients, double seconds) {
    std::string there = "client,from,to\n", links = "client,from,to,uplink_mbit,downlink_mbit\n";
    for (std::int64_t c = 0; c < clients; ++c) {
      there += fmt::format("{},0,{}\n", c, seconds);
      links += fmt::format("{},0,{},100,100\n", c, seconds);
    }
    write_file(folder_.path() / "there.csv", there);
    write_file(folder_.path() / "links.csv", links);
  }
  [[nodiscard]] overrides keys(trace_kind kind) const {
    if (kind == trace_kind::links)
      return {{"devices.link_file", (folder_.path() / "links.csv").string()}};
    return {{"devices.availability", "file"}, {"devices.availability_file", (folder_.path() / "there.csv").string()}};
  }

private:
  scratch_folder folder_;
};

std::shared_ptr<run_context> loaded_for_check(const std::filesystem::path& file, const overrides& over) {
  const auto read = read_scenario(file, over);
  if (!read)
    FAIL(diagnostic_text(read.error().front()));
  auto loaded = load_run_context(read->value, {.use = run_context_use::check});
  if (!loaded)
    FAIL(diagnostic_text(loaded.error().front()));
  return std::move(*loaded);
}

std::shared_ptr<run_context> loaded_for_check(const std::string& toml, const overrides& over) {
  const scratch_folder folder;
  write_file(folder.path() / "test.toml", toml);
  return loaded_for_check(folder.path() / "test.toml", over);
}

constexpr double longer_than_any_run = 1e8; // seconds

scenario_text method_scenario(const char* method) { return small_scenario({{"strategy.name", method}}); }

} // namespace

TEST_CASE("smoke scenarios of all methods validate, have a cost and run with traces of their clients") {
  const auto folder = std::filesystem::path(MNEME_SOURCE_DIR) / "scenarios" / "smoke";
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".toml")
      files.insert(entry.path());
  std::set<std::string> methods;
  for (const auto& file : files) {
    INFO(file.string());
    const auto plain = read_scenario(file, {});
    REQUIRE(plain);
    if (!methods.insert(plain->value.strategy.name).second)
      continue;
    const traces of_clients(plain->value.clients.count, longer_than_any_run);
    for (const auto kind : {trace_kind::availability, trace_kind::links}) {
      const auto checked = loaded_for_check(file, of_clients.keys(kind));
      CHECK(check_trace_ends(*checked).empty());
      const auto played = dry_run(*checked);
      REQUIRE(played);
      CHECK(played->report.client_rounds > 0);
    }
    // One round, because the dry run ends before the first round ends.
    auto over = of_clients.keys(trace_kind::availability);
    const auto read = read_scenario(file, over);
    REQUIRE(read);
    const std::atomic<int> interrupted = 1;
    const scratch_folder out;
    const auto ended = run_simulation(
        read->value,
        {.out = out.path() / "run", .threads = 1, .style = progress_style::quiet, .interrupts = &interrupted});
    REQUIRE(ended);
    CHECK(ended->status == "interrupted");
  }
  CHECK(methods.contains("fil-ver"));
}

TEST_CASE("dry runs of methods with a training server include churn") {
  const traces of_clients(6, longer_than_any_run);
  const std::vector<overrides> enrolments{
      {{"enrolment.kind", "all"}},
      {{"enrolment.kind", "growing"}, {"enrolment.initial", "3"}, {"enrolment.added_per_task", "3"}},
      {{"enrolment.kind", "random"}, {"enrolment.arrival_mean", "1 s"}}};
  for (const auto& enrolment : enrolments)
    for (const auto kind : {trace_kind::availability, trace_kind::links}) {
      INFO(enrolment.front().second);
      auto over = of_clients.keys(kind);
      over.insert(over.end(), enrolment.begin(), enrolment.end());
      const auto toml = method_scenario("demanding").text();
      const auto checked = loaded_for_check(toml, over);
      CHECK(check_trace_ends(*checked).empty());
      CHECK(dry_run(*checked));
      CHECK(run_toml(toml, {.over = over}).summary.status == "done");
    }
}

TEST_CASE("a dry run takes no step and computes no job of the server") {
  const traces of_clients(6, longer_than_any_run);
  const auto over = of_clients.keys(trace_kind::availability);
  const auto toml = method_scenario("demanding").text();
  counted.steps = counted.jobs = 0;
  const auto checked = loaded_for_check(toml, over);
  CHECK(check_trace_ends(*checked).empty());
  const auto played = dry_run(*checked);
  REQUIRE(played);
  CHECK_FALSE(played->exact); // the plan of the second task depends on a job
  CHECK(counted.steps == 0);
  CHECK(counted.jobs == 0);
  const auto ran = run_toml(toml, {.over = over}).summary;
  CHECK(ran.status == "done");
  CHECK(counted.steps == 2);
  CHECK(counted.jobs == 1);
  const auto one_task = loaded_for_check(toml, {{"tasks.kind", "single"}});
  const auto exact = dry_run(*one_task);
  REQUIRE(exact);
  CHECK(exact->exact);
  CHECK(exact->report.rounds == 1); // as planned by the method
}

TEST_CASE("a trace without spans is rejected even if a server job determines the method's plan") {
  const traces nobody(0, 0.0);
  for (const auto* const method : {"demanding", "fil-ver", "fedavg"}) {
    INFO(method);
    auto toml = method_scenario(method);
    if (method == std::string("fil-ver"))
      toml = toml.without("model.hidden").with({{"model.name", "vee"}});
    const auto errors = check_trace_ends(*loaded_for_check(toml.text(), nobody.keys(trace_kind::availability)));
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0].text, ContainsSubstring("has no span"));
  }
}

TEST_CASE("an exception in the server half is reported by the run, not by the dry run") {
  const traces of_clients(6, longer_than_any_run);
  const auto over = of_clients.keys(trace_kind::availability);
  const auto toml = method_scenario("broken-server").text();
  const auto checked = loaded_for_check(toml, over);
  CHECK(check_trace_ends(*checked).empty());
  const auto played = dry_run(*checked);
  REQUIRE(played);
  CHECK_FALSE(played->exact);
  const auto ran = run_toml(toml, {.over = over}).summary;
  CHECK(ran.status == "failed");
  CHECK_THAT(ran.error, ContainsSubstring("no broadcast"));
}
