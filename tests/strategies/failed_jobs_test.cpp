// Every co_await of every method fails in turn. The error must contain the job's reason, and no memory may leak.
#include "tests/support/method_federation.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr const char* fire = "the device is on fire";

/// Results that a coroutine received, by co_await.
using answers = std::vector<outcomes>;

outcomes with_fire(outcomes stage, std::size_t step) {
  stage.at(step) = std::string(fire);
  return stage;
}

/// First and last of several jobs that are awaited together; each fails.
std::vector<std::size_t> steps_of(const outcomes& stage) {
  if (stage.size() == 1)
    return {0};
  return {0, stage.size() - 1};
}

/// Numbers of failed co_awaits, by function.
struct failures {
  std::size_t clients = 0, observers = 0, server = 0, proxy = 0;
};

/// A method's federation over two tasks, in which every co_await fails before it succeeds.
class failing_federation {
public:
  failing_federation(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys)
      : federated_(name, keys), server_(federated_.method->make_server()), proxy_(federated_.method->make_proxy()),
        memories_(method_federation::clients) {}

  failures run() {
    for (std::uint32_t task = 0; task < method_federation::tasks; ++task) {
      auto info = method_federation::place_in(task, rounds_);
      const auto planned =
          server_step<task_plan>([&](server_half& half, server_context& ctx) { return half.open_task(ctx, info); });
      info.rounds_of_task = planned.rounds.value_or(3);
      // The first round, a second one and the last, because methods may have special steps in them.
      const auto last = info.rounds_of_task - 1;
      for (const auto round : std::set<std::int64_t>{0, std::min<std::int64_t>(1, last), last}) {
        info.round_of_task = round;
        info.round = {rounds_++};
        run_round_at(info, planned.observers > 0);
      }
    }
    return failed_;
  }

private:
  void run_round_at(const round_info& info, bool observed) {
    auto sent = server_->open_round(info);
    sent.info = info;
    sent.advice = advice_;
    for (std::uint32_t c = 0; c < method_federation::clients; ++c) {
      auto work = federated_.work_for(c, sent, memories_[c]);
      if (observed) {
        work.observes = true;
        (void)client_round(work, failed_.observers);
        work.observes = false;
      }
      const auto result = client_round(work, failed_.clients);
      if (result.memory)
        memories_[c] = result.memory;
      delivery arrived{.assignment = {c}, .from = {c}, .started_from = info.round, .upload = result.upload};
      arrived.rows = result.rows;
      server_->fold(arrived);
      arrived.upload = result.to_proxy;
      if (proxy_ && arrived.upload)
        proxy_->receive(arrived);
    }
    server_step<void>([&](server_half& half, server_context& ctx) { return half.close_round(ctx, info); });
    if (!proxy_)
      return;
    const auto model = server_->predict().weights;
    advice_ = step<tensors_ref, proxy_half>(
        *proxy_, [&] { return federated_.method->make_proxy(); }, failed_.proxy,
        [&](proxy_half& half, server_context& ctx) { return half.advise(ctx, info, model); });
  }

  client_result client_round(const assignment& work, std::size_t& count) {
    const auto holders = work.in.use_count();
    answers known;
    client_round_runner run(*federated_.method, work, &federated_.made);
    auto now = run.start();
    while (auto* wanted = std::get_if<plan>(&now)) {
      known.push_back(run_plan(*federated_.device, std::move(*wanted)));
      for (const auto step : steps_of(known.back())) {
        check_failed_round(work, known, step);
        ++count;
        CHECK(work.in.use_count() == holders + 1); // one by the run
      }
      now = run.resume(known.back());
    }
    if (const auto* failure = std::get_if<round_failure>(&now))
      FAIL("the round failed: " << failure->reason);
    return std::get<client_result>(std::move(now));
  }

  /// The same round, in which one job of its last co_await fails.
  void check_failed_round(const assignment& work, const answers& known, std::size_t step) {
    client_round_runner run(*federated_.method, work, &federated_.made);
    auto now = run.start();
    for (std::size_t stage = 0; stage + 1 < known.size(); ++stage)
      now = run.resume(known[stage]);
    REQUIRE(std::holds_alternative<plan>(now));
    now = run.resume(with_fire(known.back(), step));
    const auto* const failure = std::get_if<round_failure>(&now);
    REQUIRE(failure);
    CHECK(failure->reason == fire);
    CHECK(failure->client == work.client);
    CHECK(failure->round == work.in->info.round);
    CHECK(failure->last_job == job_at(work.id, known, step));
  }

  static job_id job_at(assignment_id owner, const answers& known, std::size_t step) {
    return {owner, static_cast<std::uint32_t>(known.size() - 1), static_cast<std::uint32_t>(step)};
  }

  template <class Value, class Begin>
  Value server_step(Begin begin) {
    return step<Value, server_half>(
        *server_, [&] { return federated_.method->make_server(); }, failed_.server, begin);
  }

  /// Runs a step of a half to its end. Each of its co_awaits fails in a copy of the half.
  /// @param begin makes the step's coroutine
  template <class Value, class Half, class Make, class Begin>
  Value step(Half& half, Make make, std::size_t& count, Begin begin) {
    archive saved;
    half.persist(saved);
    answers known;
    job_channel channel;
    server_context ctx(channel, &federated_.central, &federated_.made);
    auto work = begin(half, ctx);
    work.start();
    while (!work.done()) {
      known.push_back(run_plan(*federated_.device, channel.take_plan()));
      for (const auto step : steps_of(known.back())) {
        const auto copy = make();
        auto loaded = loading_from(saved);
        copy->persist(loaded);
        check_failed_step(*copy, known, step, begin);
        ++count;
      }
      channel.answer(known.back());
    }
    return work.take();
  }

  template <class Half, class Begin>
  void check_failed_step(Half& half, const answers& known, std::size_t step, Begin begin) {
    job_channel channel({77});
    server_context ctx(channel, &federated_.central, &federated_.made);
    auto work = begin(half, ctx);
    work.start();
    for (std::size_t stage = 0; stage + 1 < known.size(); ++stage)
      channel.answer(known[stage]);
    REQUIRE_FALSE(work.done());
    channel.answer(with_fire(known.back(), step));
    REQUIRE(work.done());
    try {
      (void)work.take();
      FAIL("the step has not failed");
    } catch (const job_error& e) {
      CHECK(std::string(e.what()) == fire);
      CHECK(e.job == job_at({77}, known, step));
    }
  }

  method_federation federated_;
  std::unique_ptr<server_half> server_;
  std::unique_ptr<proxy_half> proxy_;
  std::vector<memory_ref> memories_;
  tensors_ref advice_;
  std::uint32_t rounds_ = 0;
  failures failed_;
};

using keys = std::vector<std::pair<std::string, std::string>>;

failures failures_of(const std::string& name, const keys& given = {}) {
  CAPTURE(name, given);
  return failing_federation(name, given).run();
}

} // namespace

TEST_CASE("each failed co_await of a client, server or proxy half reports its job's error") {
  std::map<std::string, failures> failed;
  for (const auto& entry : strategies()) {
    failed[entry.name] = failures_of(entry.name);
    CHECK(failed[entry.name].clients > 0);
  }
  for (const auto* name :
       {"central-rehearsal", "fed-cil", "fed-il-plus", "fil-ver", "lander", "mfcl", "osi-fl", "stsa", "target"})
    CHECK(failed[name].server > 0);
  for (const auto* name : {"glfc", "lga"}) {
    CHECK(failed[name].observers > 0);
    CHECK(failed[name].proxy > 0);
  }
  CHECK(failed.contains("fedavgm")); // an example method
}

TEST_CASE("co_awaits that only some keys reach also report their job's error") {
  const std::vector<std::pair<std::string, keys>> rare{
      {"central-rehearsal", {{"system", "naive"}}},
      {"central-rehearsal", {{"system", "noise"}}},
      {"fed-et", {{"variant", "elastic-transfer"}}},
      {"fedhaf", {{"ablation", "stages"}}},
      {"lga", {{"rates", "official"}}},
      {"osi-fl", {{"retained_per_class", "2"}, {"criterion", "gradient-norm"}, {"match_moments", "true"}}},
      {"osi-fl", {{"retained_per_class", "2"}, {"criterion", "herding"}}},
      {"stsa", {{"adaptation", "none"}, {"estimator", "estimated"}}},
      {"stsa", {{"noise_on", "sums"}, {"noise_scale", "0.1"}}},
  };
  for (const auto& [name, given] : rare)
    CHECK(failures_of(name, given).clients > 0);
}
