#include <ATen/ops/full.h> // before Catch2, whose CHECK must be the last definition

#include "runtime/base/rng.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sender and receiver in one object. The name of a tensor is the number of its handle.
class one_shelf final : public tensor_exchange {
public:
  std::optional<offered_tensor> offer(const at::Tensor& value) override {
    const digest128 name{.high = 1, .low = reinterpret_cast<std::uintptr_t>(value.unsafeGetTensorImpl())};
    const bool is_new = known.emplace(name, value).second;
    return offered_tensor{.name = name, .is_new = is_new};
  }
  void keep(const digest128& name, const at::Tensor& /*value*/) override { kept.push_back(name); }
  at::Tensor find(const digest128& name) override { return known.at(name); }
  std::map<digest128, at::Tensor> known;
  std::vector<digest128> kept;
};

template <class Message>
Message across(Message sent, one_shelf& shared) {
  archive saved;
  serialize_wave(saved, sent, shared);
  archive loaded(saved.contents(), 0, saved.size());
  Message back;
  serialize_wave(loaded, back, shared);
  loaded.expect_end();
  return back;
}

tensors_ref tensors(std::int64_t count, double value) { return weights_only(at::full({count}, value)); }

start_rounds two_rounds() {
  const round_info info{.round = {3}, .task = {1}, .rounds_of_task = 5, .seen_classes = {0, 4}};
  const auto in = std::make_shared<const broadcast>(broadcast{.info = info, .weights = tensors(5, 2.0)});
  start_rounds wave{.to = {7}, .at_once = true};
  for (std::uint32_t c = 0; c < 2; ++c) {
    wave.assignments.push_back(
        {.id = {10 + c}, .client = {c}, .in = in, .seed = 99, .visit = c, .task = {1}, .observes = c == 1});
    wave.ready.emplace_back(std::chrono::nanoseconds(5 + c));
  }
  wave.assignments[1].memory = tensors(4, 1.5);
  return wave;
}

} // namespace

TEST_CASE("assignments are sent with their broadcast once, and handles are shared after loading") {
  one_shelf shared;
  const auto back = across(two_rounds(), shared);
  REQUIRE(back.assignments.size() == 2);
  CHECK((back.to == shard_id{7}));
  CHECK(back.at_once);
  CHECK(back.ready[1].time_since_epoch().count() == 6);
  CHECK(back.assignments[0].in == back.assignments[1].in);
  CHECK((back.assignments[0].in->info.round == round_id{3}));
  CHECK(back.assignments[0].in->info.seen_classes.high == 4);
  CHECK(back.assignments[0].in->weights->at(flat_weights).sum().item<double>() == 10.0);
  CHECK(back.assignments[0].memory == nullptr);
  CHECK(back.assignments[1].memory->at(flat_weights)[3].item<double>() == 1.5);
  CHECK(back.assignments[1].observes);
  CHECK((back.assignments[1].id == assignment_id{11}));
  CHECK(back.assignments[1].seed == 99);
  CHECK(shared.kept.size() == 2); // both were new

  auto again = two_rounds();
  again.assignments[1].in = back.assignments[0].in;
  archive first, second;
  serialize_wave(first, again, shared);
  serialize_wave(second, again, shared);
  CHECK(second.size() < first.size()); // all tensors are sent by name
}

TEST_CASE("reports are sent without durations; memories may be sent by name, uploads may not") {
  one_shelf shared;
  wave_report sent{.from = {2}, .last = false};
  sent.issued.push_back({.id = {{5}, 1, 2}, .key = {.kind = 3, .options = 17}, .rows = 40, .bytes = 80, .width = 6});
  sent.issued.back().compute_duration = std::chrono::seconds(9);
  sent.released = {{{{5}, 1, 2}}};
  training_losses losses;
  losses.add(3, 0.5, {{"cross_entropy", 0.25}});
  client_result result{.upload = tensors(3, 1.0),
                       .memory = tensors(6, 4.0),
                       .rows = 12,
                       .counts = {{"a", 2.0}},
                       .losses = std::make_shared<const training_losses>(losses)};
  sent.finished.push_back({.id = {8}, .result = std::move(result), .bytes = {12, 5}});
  sent.failed.push_back({.last_job = {{9}, 0, 1}, .client = {4}, .round = {6}, .reason = "NaN"});
  const auto back = across(sent, shared);
  CHECK((back.issued.at(0).id == job_id{{5}, 1, 2}));
  CHECK((back.issued.at(0).key == fuse_key{.kind = 3, .options = 17}));
  CHECK(back.issued.at(0).width == 6);
  CHECK(back.issued.at(0).compute_duration.count() == 0);
  CHECK(back.released->at(0).size() == 1);
  CHECK(back.finished.at(0).result.upload->at(flat_weights).numel() == 3);
  CHECK(back.finished.at(0).result.memory->at(flat_weights)[5].item<double>() == 4.0);
  CHECK(back.finished.at(0).bytes == party_bytes{12, 5});
  CHECK(back.finished.at(0).result.counts.at("a") == 2.0);
  REQUIRE(back.finished.at(0).result.losses);
  CHECK(back.finished.at(0).result.losses->rows == 3.0);
  CHECK(back.finished.at(0).result.losses->sum == 1.5);
  CHECK(back.finished.at(0).result.losses->term_means() == std::map<std::string, double>{{"cross_entropy", 0.25}});
  CHECK(back.failed.at(0).reason == "NaN");
  CHECK_FALSE(back.last);
  CHECK(shared.kept.size() == 1); // the memory
}

TEST_CASE("inconsistent messages are refused") {
  one_shelf shared;
  auto wave = two_rounds();
  wave.ready.pop_back();
  archive saved;
  CHECK_THROWS_AS(serialize_wave(saved, wave, shared), archive_error);

  archive report;
  wave_report sent{.from = {2}};
  sent.issued.push_back({.id = {{5}, 0, 0}, .rows = -1});
  serialize_wave(report, sent, shared);
  archive loaded(report.contents(), 0, report.size());
  wave_report back;
  CHECK_THROWS_AS(serialize_wave(loaded, back, shared), archive_error);
}

TEST_CASE("an unknown tensor name is refused") {
  one_shelf shared;
  at::Tensor none;
  archive saved; // the first tensor, sent by name
  std::uint64_t number = 1;
  std::uint8_t comes = 1;
  digest128 name{.high = 3, .low = 4};
  std::int8_t dtype = -1;
  saved(number)(comes)(name)(dtype);
  archive loaded(saved.contents(), 0, saved.size());
  CHECK_THROWS_AS(loaded.exchanging(&shared).frozen(none), archive_error);
  CHECK(shared.kept.empty());
}

TEST_CASE("messages of random bytes are either read or refused") {
  one_shelf shared;
  archive starts, reports;
  auto wave = two_rounds();
  wave_report report{.from = {2}};
  report.issued.push_back({.id = {{5}, 1, 2}, .rows = 40, .bytes = 80, .width = 6});
  report.released = {{{{5}, 1, 2}}};
  report.finished.push_back(
      {.id = {8}, .result = {.upload = tensors(3, 1.0), .memory = tensors(6, 4.0)}, .bytes = {12}});
  serialize_wave(starts, wave, shared);
  serialize_wave(reports, report, shared);
  rng_stream draw({.seed = 3, .purpose = first_method_purpose});
  std::int64_t refused = 0, read = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    const bool is_start = trial % 2 == 0;
    auto bytes = *(is_start ? starts : reports).contents();
    for (std::uint64_t change = 0; change <= draw.below(4); ++change)
      bytes[draw.below(bytes.size())] = static_cast<std::byte>(draw.below(256));
    bytes.resize(bytes.size() - draw.below(8));
    const auto buffer = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    archive loaded(buffer, 0, buffer->size());
    start_rounds some_start;
    wave_report some_report;
    try {
      if (is_start)
        serialize_wave(loaded, some_start, shared);
      else
        serialize_wave(loaded, some_report, shared);
      ++read;
    } catch (const archive_error&) {
      ++refused;
    } catch (const std::out_of_range&) { // thrown by this test's exchange for an unknown name
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 100);
}
