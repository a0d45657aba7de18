#include "actors/nodes/report_validator.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// One client whose round 5 runs on shard 3, and a validator that samples every round or none.
class one_round {
public:
  explicit one_round(double verify_share = 0.0, bool observes = false) {
    run_->scenario.worker.verify_share = verify_share;
    journal_.host_found();
    start_rounds wave{.to = {3}};
    wave.assignments.emplace_back();
    wave.assignments.back().id = {5};
    wave.assignments.back().observes = observes;
    wave.ready.emplace_back();
    journal_.record(std::move(wave));
  }
  [[nodiscard]] validation_result validate(finished_round finished) const {
    return validator.validate({.from = {3}, .finished = {std::move(finished)}}, journal_);
  }
  [[nodiscard]] std::string error(issued_job job) const {
    job.id = {{5}, 0, 0};
    return validator.validate({.from = {3}, .issued = {job}}, journal_).error;
  }
  [[nodiscard]] std::string error(std::string reason) const {
    round_failure failure;
    failure.last_job = {{5}, 0, 0};
    failure.reason = std::move(reason);
    return validator.validate({.from = {3}, .failed = {std::move(failure)}}, journal_).error;
  }

private:
  static population one_client() {
    scenario from;
    from.clients.count = 1;
    return population(from);
  }
  std::shared_ptr<run_context> run_ = std::make_shared<run_context>();
  population clients_ = one_client();
  shard_journal journal_{{3}, clients_};

public:
  report_validator validator{run_, 1};
};

/// Upload of two numbers, 8 bytes.
finished_round upload_of(float second) {
  finished_round finished;
  finished.id = {5};
  finished.result.rows = 10;
  finished.result.upload = weights_only(at::tensor({1.0F, second}, at::kFloat));
  finished.bytes[0] = 8;
  return finished;
}

} // namespace

TEST_CASE("a report with sizes out of range is rejected") {
  const one_round round;
  CHECK(round.error(issued_job{.rows = 10, .bytes = 4, .width = 8}).empty());
  CHECK_THAT(round.error(issued_job{.rows = std::int64_t{1} << 41, .bytes = 4, .width = 8}),
             ContainsSubstring("requests a job of 2199023255552 rows"));
  CHECK_THAT(round.error(issued_job{.rows = 10, .bytes = 4, .width = 0}), ContainsSubstring("width 0"));
  auto heavy = upload_of(2.0F);
  heavy.result.rows = -1;
  CHECK_THAT(round.validate(heavy).error, ContainsSubstring("a weight out of range"));
  auto other_bytes = upload_of(2.0F);
  other_bytes.bytes[0] = 9;
  CHECK_THAT(round.validate(other_bytes).error, ContainsSubstring("bytes, reported as"));
  CHECK(round.validate(upload_of(2.0F)).error.empty());
}

TEST_CASE("a report with invalid metrics is rejected") {
  const one_round round;
  auto with = [&](const std::string& name, double value) {
    auto finished = upload_of(2.0F);
    finished.result.counts = std::map<std::string, double>{{name, value}};
    return round.validate(finished).error;
  };
  CHECK(with("kept", 1.0).empty());
  CHECK_THAT(with("", 1.0), ContainsSubstring("metrics with invalid names"));
  CHECK_THAT(with("a\"b", 1.0), ContainsSubstring("metrics with invalid names"));
  CHECK_THAT(with("kept", std::numeric_limits<double>::infinity()), ContainsSubstring("metrics that are not finite"));
}

TEST_CASE("uploads of observing clients and messages without a proxy are rejected") {
  CHECK_THAT(one_round(0.0, true).validate(upload_of(2.0F)).error, ContainsSubstring("the client only observes"));
  auto to_proxy = upload_of(2.0F);
  to_proxy.result.to_proxy = to_proxy.result.upload;
  to_proxy.bytes[1] = 8;
  CHECK_THAT(one_round().validate(to_proxy).error, ContainsSubstring("the method does not have"));
}

TEST_CASE("a failure needs a reason, and an interrupt a request") {
  const one_round round;
  CHECK(round.error(std::string("out of memory")).empty());
  CHECK_FALSE(round.error(std::string()).empty());
  CHECK_FALSE(round.error(std::string(20'000, 'x')).empty());
  CHECK_FALSE(round.error(std::string(interrupted_text)).empty());
}

TEST_CASE("a sampled round waits for its replay and must be bitwise equal to it") {
  one_round round(1.0);
  auto& validator = round.validator;
  CHECK(validator.is_sampled({5}));
  CHECK_FALSE(one_round(0.0).validator.is_sampled({5}));
  CHECK(validator.begin({5}, {3}));
  CHECK_FALSE(validator.begin({5}, {3}));
  CHECK(round.validate(upload_of(2.0F)).is_pending);
  CHECK(validator.end({.id = {5}, .result = upload_of(2.0F).result}) == shard_id{3});
  CHECK_FALSE(round.validate(upload_of(2.0F)).is_pending);
  CHECK(round.validate(upload_of(2.0F)).error.empty());
  const auto other = round.validate(upload_of(2.5F));
  CHECK(other.has_other_result);
  CHECK_THAT(
      other.error,
      ContainsSubstring("finishes assignment 5 of client 0 with a result that differs from that of this process"));
  CHECK(validator.end({.id = {5}, .failure = "NaN"}));
  CHECK(round.validate(upload_of(2.0F)).has_other_result);
  CHECK(validator.end({.id = {5}, .failure = std::string(interrupted_text)}));
  CHECK(round.validate(upload_of(2.0F)).error.empty());
  validator.forget({5});
  CHECK_FALSE(validator.end({.id = {5}}));
}
