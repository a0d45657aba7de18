#include "actors/parties/personal_evaluation.hpp"
#include "runtime/base/tuning.hpp"
#include <ATen/core/Tensor.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Bit of rng_key::visit that no round sets. With this bit, the trainings in this file draw other random numbers than
/// the clients' rounds.
constexpr std::uint32_t personal_visits = 0x8000'0000U;

/// Test rows, and the classes that the model may predict for them.
struct masked_rows {
  class_range mask{};
  std::vector<std::int64_t> rows{};
};

/// Adds rows to the last group if it has the same mask; otherwise adds a new group.
void append(std::vector<masked_rows>& groups, class_range mask, const std::vector<std::int64_t>& rows) {
  if (rows.empty())
    return;
  if (groups.empty() || groups.back().mask != mask)
    groups.push_back({.mask = mask});
  groups.back().rows.insert(groups.back().rows.end(), rows.begin(), rows.end());
}

/// The task's test rows whose classes occur in the client's training rows of this task.
std::vector<std::int64_t> rows_of_held_classes(const run_context& run, client_id client, task_id task) {
  const auto& tasks = *run.tasks;
  std::vector<bool> held(static_cast<std::size_t>(tasks.classes));
  for (const auto row : run.rows->held(client, task))
    held[static_cast<std::size_t>(tasks.train->label(row))] = true;
  std::vector<std::int64_t> rows;
  for (const auto row : tasks.tasks[task.value].test)
    if (held[static_cast<std::size_t>(tasks.test->label(row))])
      rows.push_back(row);
  return rows;
}

std::vector<std::int64_t> test_rows_of(const run_context& run, client_id client, task_id task) {
  if (run.population->member(client, task) != membership::active)
    return {};
  return run.held_out ? run.held_out->test_rows(client, task) : rows_of_held_classes(run, client, task);
}

/// Sums the results of one client's tests. @return the error of a failed job; empty if there is none
std::string sum_tests(const outcomes& results, std::size_t first, std::size_t count, evaluate_output& sum) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (const auto* const reason = std::get_if<std::string>(&results.at(i)))
      return *reason;
    const auto& part = std::get<evaluate_output>(std::get<work_output>(results[i]));
    sum.rows += part.rows;
    sum.correct += part.correct;
  }
  return {};
}

} // namespace

/// A client under test.
struct personal_evaluation::subject {
  client_test result{};
  sample_view training{};
  std::vector<masked_rows> tests{};
  predictor shared{}, own{};
  std::size_t jobs = 0; // number of test jobs per model
};

/// State of the tests of all clients, a few at a time.
struct personal_evaluation::progress {
  evaluate in{};
  const server_half* half = nullptr;
  std::function<void(client_tests)> then{};
  std::vector<subject> all{};
  std::size_t first = 0, last = 0; // clients [first, last) are being tested
  client_tests results{};

  void fail(client_id client, const std::string& reason) {
    then({.failure = fmt::format("client {}: {}", client.value, reason)});
  }
};

void personal_evaluation::keep(const deliveries& in) {
  if (run_.scenario.evaluation.personal != personal_model::local)
    return;
  for (const auto& sent : in.uploads) {
    if (!sent.upload)
      continue;
    auto model = std::make_shared<tensor_map>();
    for (const auto& [name, value] : *sent.upload) {
      const auto has_name = [&name = name](const parameter& of_net) { return of_net.name == name; };
      const auto& layout = run_.net->layout();
      if (name == flat_weights || std::any_of(layout.begin(), layout.end(), has_name))
        model->put(name, value);
    }
    uploads_[sent.from.value] = std::move(model);
  }
}

void personal_evaluation::persist(archive& state) { state(uploads_); }

std::vector<personal_evaluation::subject> personal_evaluation::subjects(const evaluate& in) const {
  const bool local = run_.scenario.evaluation.personal == personal_model::local;
  const auto current = in.where.task;
  std::vector<subject> found;
  for (std::uint32_t c = 0; c < run_.population->size(); ++c) {
    const client_id client{c};
    if (local ? !uploads_.contains(c) : run_.rows->size(client, current) == 0)
      continue;
    subject tested{.result = {.client = client, .train_rows = run_.rows->size(client, current)}};
    for (std::uint32_t t = 0; t < in.masks.size(); ++t) {
      const auto rows = test_rows_of(run_, client, {t});
      append(tested.tests, in.masks[t], rows);
      tested.result.test_rows += std::ssize(rows);
    }
    if (tested.result.test_rows > 0)
      found.push_back(std::move(tested));
  }
  return found;
}

plan personal_evaluation::test_jobs(const predictor& learned, const subject& tested, const evaluate&) const {
  plan jobs;
  for (const auto& [mask, rows] : tested.tests)
    for (std::size_t first = 0; first < rows.size(); first += tuning::evaluation_rows) {
      const auto last = std::min(rows.size(), first + tuning::evaluation_rows);
      const auto at = [&](std::size_t i) { return rows.begin() + static_cast<std::ptrdiff_t>(i); };
      const auto& source = run_.held_out ? run_.tasks->train : run_.tasks->test;
      jobs.push_back(evaluate_job{
          .learned = learned,
          .samples = {.source = source, .rows = std::make_shared<const std::vector<std::int64_t>>(at(first), at(last))},
          .mask = mask});
    }
  return jobs;
}

train_job personal_evaluation::tuning_job(const predictor& start, const subject& tested, const evaluate& in) const {
  const auto& scenario = run_.scenario;
  auto options = options_for_round(scenario.training, scenario.model.trainable, in.where.seen_classes, 0, 1);
  options.epochs = scenario.evaluation.personal_epochs;
  return {.net = start.net,
          .start = start.weights,
          .samples = run_.rows->view(tested.result.client, in.where.task),
          .objective = cross_entropy_objective(),
          .options = std::move(options),
          .stream = key_for({.seed = static_cast<std::uint64_t>(scenario.seed),
                             .client = tested.result.client,
                             .task = in.where.task,
                             .visit = personal_visits | in.where.round.value},
                            purpose::shuffle)};
}

/// The last model that the client uploaded. Parameters that are not uploaded have the values of the server's model.
predictor personal_evaluation::local_model(const predictor& shared, client_id client) const {
  const auto& sent = *uploads_.at(client.value);
  if (sent.empty())
    throw std::runtime_error("the upload has no tensor of the net; expected the client's weights in each upload, or "
                             "evaluation.personal = \"fine-tuned\"");
  if (const auto* const flat = sent.find(flat_weights))
    return {.net = shared.net, .weights = weights_only(*flat)};
  auto flat = shared.weights->at(flat_weights).clone();
  for (const auto& part : shared.net->layout())
    if (const auto* const value = sent.find(part.name))
      flat.narrow(0, part.offset, part.size).copy_(value->flatten());
  return {.net = shared.net, .weights = weights_only(flat)};
}

/// Number of clients whose models fit into half of worker.lookahead_memory.
std::size_t personal_evaluation::clients_at_once() const {
  constexpr std::int64_t clients_max = 4096;
  const auto bytes = std::max<std::int64_t>(run_.net->size(), 1) * static_cast<std::int64_t>(sizeof(float));
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(run_.scenario.worker.lookahead_memory.bytes / 2 / bytes, 1, clients_max));
}

void personal_evaluation::run(const evaluate& in, const server_half& half, std::function<void(client_tests)> then) {
  auto now = std::make_shared<progress>();
  now->in = in;
  now->half = &half;
  now->then = std::move(then);
  now->all = subjects(in);
  test_next(now);
}

/// Tests the server's model on the rows of the next clients, and fine-tunes it for them in the same plan.
void personal_evaluation::test_next(const std::shared_ptr<progress>& now) {
  if (now->first == now->all.size())
    return now->then(std::move(now->results));
  now->last = std::min(now->all.size(), now->first + clients_at_once());
  plan jobs;
  for (auto i = now->first; i < now->last; ++i) {
    auto& tested = now->all[i];
    tested.shared = now->half->predict_for(tested.result.client);
    if (run_.scenario.evaluation.personal == personal_model::fine_tuned)
      jobs.push_back(tuning_job(tested.shared, tested, now->in));
  }
  for (auto i = now->first; i < now->last; ++i) {
    auto tests = test_jobs(now->all[i].shared, now->all[i], now->in);
    now->all[i].jobs = tests.size();
    std::move(tests.begin(), tests.end(), std::back_inserter(jobs));
  }
  steps_.run_all(std::move(jobs), [this, now](outcomes results) {
    if (is_interrupted(results))
      return now->then({.interrupted = true});
    test_own_models(now, std::move(results));
  });
}

/// Tests the clients' own models. @param results results of the fine-tuning jobs, if there are any, and of the test
/// jobs before them
void personal_evaluation::test_own_models(const std::shared_ptr<progress>& now, outcomes results) {
  std::size_t next = 0;
  for (auto i = now->first; i < now->last; ++i) {
    auto& tested = now->all[i];
    if (run_.scenario.evaluation.personal == personal_model::local) {
      const auto reason = exception_message_of([&] { tested.own = local_model(tested.shared, tested.result.client); });
      if (!reason.empty())
        return now->fail(tested.result.client, reason);
      continue;
    }
    if (const auto* const reason = std::get_if<std::string>(&results.at(next)))
      return now->fail(tested.result.client, *reason);
    auto& trained = std::get<train_output>(std::get<work_output>(results[next++]));
    tested.own = {.net = tested.shared.net, .weights = std::move(trained.weights)};
  }
  plan jobs;
  for (auto i = now->first; i < now->last; ++i) {
    auto& tested = now->all[i];
    evaluate_output sum;
    if (const auto reason = sum_tests(results, next, tested.jobs, sum); !reason.empty())
      return now->fail(tested.result.client, reason);
    tested.result.test_rows = sum.rows; // tokens of a language model
    tested.result.correct_before = sum.correct;
    next += tested.jobs;
    auto tests = test_jobs(tested.own, tested, now->in);
    std::move(tests.begin(), tests.end(), std::back_inserter(jobs));
    tested.shared = tested.own = {};
  }
  steps_.run_all(std::move(jobs), [this, now](const outcomes& after) { add_results(now, after); });
}

void personal_evaluation::add_results(const std::shared_ptr<progress>& now, const outcomes& results) {
  if (is_interrupted(results))
    return now->then({.interrupted = true});
  std::size_t next = 0;
  for (; now->first < now->last; ++now->first) {
    auto& tested = now->all[now->first];
    evaluate_output sum;
    if (const auto reason = sum_tests(results, next, tested.jobs, sum); !reason.empty())
      return now->fail(tested.result.client, reason);
    tested.result.correct = sum.correct;
    next += tested.jobs;
    now->results.clients.push_back(tested.result);
    tested.tests.clear();
  }
  test_next(now);
}

// -- validation -------------------------------------------------------------------------------------------------------

namespace {

/// True if some client has a test row in some task.
bool has_test_rows(const run_context& run) {
  for (std::uint32_t t = 0; t < run.tasks->tasks.size(); ++t)
    for (std::uint32_t c = 0; c < run.population->size(); ++c)
      if (!test_rows_of(run, {c}, {t}).empty())
        return true;
  return false;
}

/// True if the method's server predicts with a head of a net that local training can change.
bool has_trainable_head(const run_context& run) {
  predictor learned;
  const auto failure = exception_message_of([&] { learned = run.method->make_server()->predict(); });
  return failure.empty() && learned.net && learned.net->classes() > 0 && learned.weights &&
         learned.weights->find(flat_weights) && learned.kind == readout_kind::head && !learned.projection.defined();
}

} // namespace

diagnostics personal_evaluation_errors(const run_context& run) {
  const auto& evaluation = run.scenario.evaluation;
  const auto fail = [&](const char* key, const std::string& text) {
    return diagnostics{{run.scenario.where(key), text}};
  };
  if (evaluation.personal == personal_model::none)
    return {};
  const auto& method = run.scenario.strategy.name;
  if (run.rows->central())
    return fail("evaluation.personal",
                fmt::format("'{}' trains on the rows of all clients together, so clients have no "
                            "models of their own; expected evaluation.personal = \"none\"",
                            method));
  if (evaluation.personal == personal_model::local && !run.method->uploads_models())
    return fail("evaluation.personal",
                fmt::format("the uploads of '{}' are not models of the net, so none is kept as the client's own; "
                            "expected evaluation.personal = \"none\" or \"fine-tuned\"",
                            method));
  if (evaluation.personal == personal_model::fine_tuned && !has_trainable_head(run))
    return fail("evaluation.personal",
                fmt::format("'{}' does not predict with the head of a net that it trains, so its model cannot be "
                            "fine-tuned; expected evaluation.personal = \"none\"",
                            method));
  if (!has_test_rows(run))
    return fail(evaluation.holds_out_rows() ? "evaluation.personal_share" : "evaluation.personal_rows",
                "no client has a test row of its own; expected a larger evaluation.personal_share, fewer clients, or "
                "evaluation.personal_rows = \"classes\"");
  return {};
}

} // namespace mneme
