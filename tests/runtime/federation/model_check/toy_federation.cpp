#include "tests/runtime/federation/model_check/toy_federation.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme::test {
namespace {

using namespace std::chrono_literals;

/// Few rows per client and task, sometimes none.
class toy_partition final : public partition {
public:
  explicit toy_partition(std::uint64_t seed) : seed_(seed) {}
  [[nodiscard]] std::int64_t size(client_id client, task_id task) const override {
    return static_cast<std::int64_t>(mixed({seed_, client.value, task.value, 77}) % 5);
  }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id client, task_id task) const override {
    return std::vector<std::int64_t>(static_cast<std::size_t>(size(client, task)));
  }

private:
  std::uint64_t seed_;
};

/// Draws a scenario. Times are coarse, so that many events coincide.
class toy_maker {
public:
  explicit toy_maker(std::uint64_t seed) : stream_({.seed = seed, .purpose = first_method_purpose}) {
    scenario_.seed = static_cast<std::int64_t>(seed);
    scenario_.clients.count = between(1, 9);
    tasks_ = between(1, 3);
    has_large_uploads_ = chance(0.1);
  }
  toy_federation make();

private:
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  [[nodiscard]] bool chance(double share) { return stream_.uniform() < share; }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> choices) {
    return choices.begin()[stream_.below(choices.size())];
  }
  [[nodiscard]] std::vector<double> one_each(std::initializer_list<double> choices) {
    std::vector<double> drawn;
    for (std::int64_t c = 0; c < scenario_.clients.count; ++c)
      drawn.push_back(one_of(choices));
    return drawn;
  }
  void draw_devices();
  void draw_churn();
  void draw_rounds();
  void draw_work(toy_federation& made);

  rng_stream stream_;
  scenario scenario_;
  std::int64_t tasks_ = 1;
  bool has_large_uploads_ = false; // the server must fold them before virtual time advances
};

void toy_maker::draw_devices() {
  auto& devices = scenario_.devices;
  devices.rows_per_second = one_each({1.0, 1.0, 2.0, 4.0});
  devices.uplink_mbit = one_each({0.0, 0.000064, 0.000128}); // 64 bits per second
  devices.downlink_mbit = one_each({0.0, 0.000064});
  devices.proxy_uplink_mbit = one_each({0.0, 0.000032, 0.000128});
  devices.proxy_downlink_mbit = one_each({0.0, 0.000032});
  devices.latency = one_of<virtual_duration>({0s, 500ms, 1s});
  devices.dropout = one_of({0.0, 0.0, 0.2, 0.5});
  if (has_large_uploads_)
    devices.uplink_mbit = 0.0;
  if (chance(0.3)) {
    devices.availability = device_availability::diurnal;
    devices.availability_period = one_of<virtual_duration>({7s, 30s});
  }
}

void toy_maker::draw_churn() {
  auto& enrolment = scenario_.enrolment;
  enrolment.kind = one_of({enrolment_kind::all, enrolment_kind::all, enrolment_kind::table, enrolment_kind::growing,
                           enrolment_kind::random, enrolment_kind::random});
  for (std::int64_t group = between(1, scenario_.clients.count); group > 0; --group) {
    enrolment.table.emplace_back();
    for (std::int64_t t = 0; t < tasks_; ++t)
      enrolment.table.back() += one_of({'A', 'A', 'A', 'O', 'X'});
  }
  enrolment.initial = between(1, scenario_.clients.count);
  enrolment.added_per_task = (scenario_.clients.count - enrolment.initial) / tasks_;
  enrolment.arrival_mean = one_of<virtual_duration>({0s, 5s});
  enrolment.lifetime_mean = one_of<virtual_duration>({5s, 20s, 100s});
  enrolment.absence_mean = one_of<virtual_duration>({0s, 4s});
  enrolment.rejoin = one_of({rejoin_policy::with_memory, rejoin_policy::without_memory});
  if (chance(0.3)) {
    scenario_.tasks.transition = task_transition::staggered;
    scenario_.tasks.transition_spread = one_of<virtual_duration>({0s, 3s, 20s});
  }
  scenario_.tasks.keep_task_share = one_of({0.0, 0.0, 0.0, 0.3, 0.6});
}

void toy_maker::draw_rounds() {
  auto& rounds = scenario_.rounds;
  rounds.mode = one_of({round_mode::sync, round_mode::async});
  rounds.per_task = between(1, 4);
  rounds.cohort = between(0, scenario_.clients.count);
  rounds.deadline = one_of<virtual_duration>({0s, 2s, 5s, 9s});
  rounds.late = one_of({late_policy::drop, late_policy::keep});
  rounds.aggregation = one_of({aggregation_kind::fedbuff, aggregation_kind::fedbuff, aggregation_kind::fedasync});
  rounds.buffer = between(1, 4);
  rounds.concurrency = between(1, scenario_.clients.count);
  scenario_.evaluation.every = between(0, 2);
  scenario_.evaluation.mask = one_of({evaluation_mask::seen, evaluation_mask::all});
  scenario_.checkpoint = {.every = between(0, 2), .force = chance(0.5), .keep = 2};
}

/// Draws the settings of shards and of the work, and memory limits.
void toy_maker::draw_work(toy_federation& made) {
  constexpr auto plenty = toy_federation::plenty;
  auto& settings = made.settings;
  settings.upload_size_known = chance(0.5);
  if (!settings.upload_size_known && chance(0.5))
    settings.other_parties = {party_id::proxy};
  settings.hide_task_from_clients = chance(0.2);
  settings.observers_cost_time = chance(0.7);
  made.upload_scale = has_large_uploads_ ? std::int64_t{1} << 21 : 1; // 16 MiB and more
  made.stages_max = settings.upload_size_known ? 1 : between(0, 3);
  made.broadcast_bytes = 8 * between(1, 3);
  made.once_bytes = 8 * between(0, 2);
  for (std::int64_t t = 0; t < tasks_; ++t)
    made.plans.push_back({.rounds = chance(0.2) ? std::optional(between(1, 3)) : std::nullopt,
                          .all_enrolled = chance(0.2),
                          .clients_without_rows = chance(0.2),
                          .observers = !settings.is_async() && chance(0.3) ? between(1, 4) : 0});
  settings.shards = between(1, 3);
  settings.batching = {.workers = between(1, 3),
                       .balance_over_workers = chance(0.7),
                       .width_is_fixed = chance(0.3),
                       .batches_per_worker = one_of<std::int64_t>({1, 1, 3})};
  settings.ahead_bytes_max = one_of<std::int64_t>({1, 60, 200, plenty, plenty});
  settings.results_bytes_max = one_of<std::int64_t>({1, 30, 80, plenty, plenty});
  settings.results_are_repeatable = chance(0.8);
  settings.stored_results_bytes_max = one_of<std::int64_t>({0, plenty, plenty});
  settings.memory_bytes_max = chance(0.02) ? 16 : 0;
}

toy_federation toy_maker::make() {
  draw_devices();
  draw_churn();
  draw_rounds();
  const auto clients = std::make_shared<const population>(scenario_);
  auto tasks = std::make_shared<task_stream>();
  tasks->tasks.resize(static_cast<std::size_t>(tasks_));
  const auto shown = scenario_.rounds.mode == round_mode::sync && chance(0.05) ? row_visibility::centralized
                     : chance(0.2)                                             ? row_visibility::cumulative
                                                                               : row_visibility::current;
  const auto split = std::make_shared<const toy_partition>(static_cast<std::uint64_t>(scenario_.seed));
  toy_federation made{.settings = {.seed = static_cast<std::uint64_t>(scenario_.seed),
                                   .clients = clients,
                                   .rows = std::make_shared<const client_rows>(tasks, split, clients, shown),
                                   .rounds = scenario_.rounds,
                                   .evaluation = scenario_.evaluation,
                                   .rejoin = scenario_.enrolment.rejoin,
                                   .transfer_dtype = wire_format::fp32,
                                   .classes = 2 * tasks_,
                                   .method = "toy",
                                   .rounds_are_stated = chance(0.5),
                                   .checkpoint = scenario_.checkpoint,
                                   .trace = true,
                                   .events_max = toy_federation::events_max}};
  for (std::int64_t t = 0; t < tasks_; ++t)
    made.settings.tasks.push_back({.current_classes = {2 * t, 2 * t + 2}, .seen_classes = {0, 2 * t + 2}});
  draw_work(made);
  return made;
}

} // namespace

void require(bool holds, const char* rule, std::uint64_t number) {
  if (!holds)
    throw broken_rule(std::string(rule) + " (" + std::to_string(number) + ")");
}

std::uint64_t mixed(std::initializer_list<std::uint64_t> values) {
  std::uint64_t sum = 0x9e3779b97f4a7c15;
  for (const auto value : values) { // finalizer of splitmix64 (Steele, Lea and Flood 2014) over a chain
    sum = (sum ^ value) + 0x9e3779b97f4a7c15;
    sum = (sum ^ (sum >> 30)) * 0xbf58476d1ce4e5b9;
    sum = (sum ^ (sum >> 27)) * 0x94d049bb133111eb;
    sum ^= sum >> 31;
  }
  return sum;
}

toy_federation random_federation(std::uint64_t seed) { return toy_maker(seed).make(); }

std::vector<std::vector<toy_job>> toy_federation::stages_of(const toy_assignment& given) const {
  const auto drawn = [&](std::uint64_t a, std::uint64_t b, std::uint64_t below) {
    return static_cast<std::int64_t>(mixed({settings.seed, given.client.value, given.visit, a, b}) % below);
  };
  const bool single = settings.upload_size_known && !given.observes;
  const auto stages = single ? 1 : drawn(0, 0, static_cast<std::uint64_t>(stages_max + 1));
  std::vector<std::vector<toy_job>> made(static_cast<std::size_t>(stages));
  for (std::uint64_t s = 0; s < made.size(); ++s) {
    const auto jobs = has_single_jobs() ? 1 : 1 + drawn(1, s, 2);
    for (std::int64_t j = 0; j < jobs; ++j) {
      const auto which = 10 * s + static_cast<std::uint64_t>(j);
      made[s].push_back({.rows = rows_of_every_job > 0 ? rows_of_every_job : 1 + drawn(2, which, 4),
                         .bytes = 8 * (1 + drawn(3, which, 3)),
                         .key = {.kind = 0, .options = static_cast<std::uint64_t>(drawn(4, which, 2))}});
    }
  }
  return made;
}

std::vector<virtual_duration> toy_federation::durations_of(const toy_assignment& given) const {
  std::vector<virtual_duration> durations;
  for (const auto& jobs : stages_of(given)) {
    durations.emplace_back(0); // jobs of one stage run in parallel
    for (const auto& job : jobs)
      durations.back() = std::max(durations.back(), settings.clients->devices().compute_time(given.client, job.rows));
  }
  return durations;
}

toy_result toy_federation::result_of(const toy_assignment& given) const {
  const auto value =
      mixed({given.client.value, given.task.value, given.visit, given.model, given.memory, given.advice});
  toy_result made{.upload = value | 1, .rows = static_cast<std::int64_t>(1 + value % 7)};
  if (value % 4 != 0)
    made.memory = mixed({value, given.memory, 5}) | 1;
  made.upload_bytes =
      settings.upload_size_known ? broadcast_bytes : upload_scale * static_cast<std::int64_t>(8 + 8 * (value % 4));
  made.count = static_cast<double>(value % 3);
  made.loss = static_cast<double>(value % 1'000'003) / 7.0 * static_cast<double>(value % 5 != 0);
  if (given.observes) {
    made.upload = 0;
    made.rows = made.upload_bytes = 0;
    return made;
  }
  if (upload_bytes_of_all > 0)
    made.upload_bytes = upload_bytes_of_all;
  if (has_proxy() && (proxy_bytes_of_all > 0 || value % 5 < 2)) {
    made.to_proxy = mixed({value, 6}) | 1;
    made.proxy_bytes = proxy_bytes_of_all > 0 ? proxy_bytes_of_all : static_cast<std::int64_t>(8 + 8 * (value % 3));
  }
  return made;
}

void toy_proxy::receive(const delivery& sent, std::uint64_t value) {
  sum = mixed({sum, value, sent.from.value, sent.started_from.value});
}

digest128 toy_proxy::advise(std::uint64_t model) {
  advice = mixed({model, sum}) | 1;
  return {.high = advice, .low = sum};
}

void toy_server::fold(const delivery& upload, std::uint64_t value) {
  const auto weight = static_cast<std::uint64_t>(1e6 * upload.staleness_weight);
  sum = mixed({sum, value, static_cast<std::uint64_t>(upload.rows), upload.from.value, upload.started_from.value,
               static_cast<std::uint64_t>(upload.staleness), weight});
}

digest128 toy_server::step() {
  model = mixed({model, sum}) | 1;
  sum = 0;
  return {.high = model, .low = sum};
}

evaluated toy_server::evaluate(task_id upto, class_range mask) const {
  evaluated sums;
  for (std::uint64_t t = 0; t <= upto.value; ++t) {
    const auto value = mixed({model, t, static_cast<std::uint64_t>(mask.high)});
    const auto rows = static_cast<std::int64_t>(value % 9);
    sums.per_task.push_back({.rows = rows, .correct = rows / 2, .loss_sum = static_cast<double>(value % 1000)});
  }
  return sums;
}

toy_server::metrics_of_model toy_server::metrics(task_id upto, class_range mask) const {
  const auto percent = [](double part, double whole) { return whole == 0.0 ? 0.0 : 100.0 * part / whole; };
  double rows = 0.0, correct = 0.0;
  metrics_of_model found{.accuracies = {0.0}};
  for (const auto& task : evaluate(upto, mask).per_task) {
    rows += static_cast<double>(task.rows);
    correct += static_cast<double>(task.correct);
    found.loss += task.loss_sum;
    found.accuracies.push_back(percent(static_cast<double>(task.correct), static_cast<double>(task.rows)));
  }
  found.accuracies.front() = percent(correct, rows);
  found.loss = rows == 0.0 ? 0.0 : found.loss / rows;
  return found;
}

tensors_ref as_tensors(std::uint64_t value, std::int64_t bytes) {
  if (value == 0)
    return nullptr;
  auto tensor = at::zeros({bytes / 8}, at::kLong);
  tensor.data_ptr<std::int64_t>()[0] = static_cast<std::int64_t>(value);
  return weights_only(std::move(tensor));
}

std::uint64_t as_number(const tensors_ref& tensors) {
  return tensors ? static_cast<std::uint64_t>(tensors->at(flat_weights).data_ptr<std::int64_t>()[0]) : 0;
}

} // namespace mneme::test
