#include "actors/parties/server.hpp"
#include "actors/compute/training_rows.hpp"
#include "actors/parties/finite_step.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include "runtime/method/upload_size.hpp"
#include "runtime/results/class_scores.hpp"
#include "runtime/storage/parameters.hpp"
#include <ATen/core/Tensor.h>
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
namespace mneme {
namespace {

sample_view chunk_of(const std::shared_ptr<const dataset>& source, const std::vector<std::int64_t>& rows,
                     std::size_t first) {
  const auto last = std::min(rows.size(), first + tuning::evaluation_rows);
  return {.source = source,
          .rows = std::make_shared<const std::vector<std::int64_t>>(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                                                    rows.begin() + static_cast<std::ptrdiff_t>(last))};
}

/// Digest of the trained weights and the readout. The projection is left out: a change of the projection also changes
/// the readout, which is fitted on projected features.
digest128 digest_of_model(const predictor& learned) {
  const auto weights = learned.weights ? digest_of(*learned.weights) : digest128{};
  if (!learned.readout.defined())
    return weights;
  run_digest both;
  both.add(weights);
  tensor_map readout;
  readout.put("readout", learned.readout.contiguous());
  both.add(digest_of(readout));
  return both.value();
}

} // namespace

server_state::server_state(server_actor::pointer self, const party_setup& setup)
    : self_(self), context_(setup.run), party_(self, setup, party_id::server, setup.run->method->make_server()),
      rows_(std::make_unique<training_rows>(*context_)) {
  if (context_->scenario.evaluation.personal != personal_model::none)
    personal_.emplace(*context_, party_.steps());
}

server_actor::behavior_type server_state::make_behavior() {
  return {
      [this](const deliveries& in) {
        if (personal_)
          personal_->keep(in);
        return party_.handle(in);
      },
      [this](const take_step& in) { return close(in); },
      [this](save_model) {
        return party_.tried("saving the model", [&]() -> caf::result<final_model> { return named_model(); });
      },
      [this](save_state& in) { return save(in); },
      [this](restore_state& in) { return restore(in); },
      [this](batch_done& in) { party_.steps().handle(in); },
      [this](const open_task& in) { return open(in); },
      [this](const open_round& in) {
        return party_.tried("opening a round", [&]() -> caf::result<opened_round> { return broadcast_of(in.where); });
      },
      [this](const evaluate& in) { return party_.tried("evaluation", [&] { return evaluate_model(in); }); },
      [this](measure_fairness) { return party_.tried("evaluation", [&] { return measure(); }); },
  };
}

opened_round server_state::broadcast_of(const round_info& info) {
  auto sent = party_.half().open_round(info);
  expect_finite(*context_, "the broadcast", sent.weights);
  expect_finite(*context_, "the broadcast", sent.extra);
  const auto format = context_->scenario.devices.transfer_dtype;
  opened_round answer;
  answer.bytes = wire_bytes(sent.weights.get(), format) + wire_bytes(sent.extra.get(), format) +
                 masked_bytes(context_->scenario).down;
  answer.initial_payload_bytes = wire_bytes(sent.initial_payload.get(), format);
  const auto& layout = context_->method->wire_layout(*context_->net);
  sent.info = info;
  sent.weights = convert_for_transfer(sent.weights, format, layout);
  sent.extra = convert_for_transfer(sent.extra, format, layout);
  sent.initial_payload = convert_for_transfer(sent.initial_payload, format, layout);
  answer.in = std::make_shared<const broadcast>(std::move(sent));
  return answer;
}

// -- checkpoints ------------------------------------------------------------------------------------------------------

caf::result<saved_state> server_state::save(save_state& in) {
  if (personal_)
    personal_->persist(in.so_far.section("clients' models"));
  return party_.save(in);
}

caf::result<restored_state> server_state::restore(restore_state& in) {
  if (personal_)
    if (const auto damage = archive_error_of([&] { personal_->persist(in.sections.section("clients' models")); });
        !damage.empty())
      return party_.steps().step_error("going on from a checkpoint", "it " + damage);
  return party_.restore(in);
}

// -- steps of the server half -----------------------------------------------------------------------------------------

caf::result<task_plan> server_state::open(const open_task& in) {
  return party_.steps().run(
      self_->make_response_promise<task_plan>(), in.where, rows_.get(),
      [this](server_context& ctx, const round_info& where) { return party_.half().open_task(ctx, where); },
      [](task<task_plan>& step) { return step.take(); });
}

caf::result<step_taken> server_state::close(const take_step& in) {
  return party_.steps().run(
      self_->make_response_promise<step_taken>(), in.where, rows_.get(),
      [this](server_context& ctx, const round_info& where) { return party_.half().close_round(ctx, where); },
      [this, in](task<void>& step) {
        step.take();
        const auto model = party_.half().predict();
        expect_finite(*context_, "the new model", model);
        step_taken answer{.digest = digest_of_model(model)};
        if (context_->needs.has_proxy)
          answer.advice = model.weights;
        if (context_->dumped_round == std::int64_t{in.where.round.value} + 1)
          answer.kept = named_weights();
        return answer;
      });
}

// -- evaluation -------------------------------------------------------------------------------------------------------

plan server_state::evaluation_plan(const evaluate& in) const {
  plan jobs;
  const auto learned = party_.half().predict();
  for (std::uint32_t t = 0; t < in.masks.size(); ++t) {
    const auto& rows = context_->tasks->tasks[t].test;
    for (std::size_t first = 0; first < rows.size(); first += tuning::evaluation_rows)
      jobs.push_back(evaluate_job{.learned = learned,
                                  .samples = chunk_of(context_->tasks->test, rows, first),
                                  .mask = in.masks[t],
                                  .lists_answers = in.end_of_task || is_of_all_tasks(in)});
  }
  return jobs;
}

/// True if the evaluation covers all tasks, as during the last task. summary.json scores the predictions of the last
/// such evaluation by class.
bool server_state::is_of_all_tasks(const evaluate& in) const {
  return in.masks.size() == context_->tasks->tasks.size();
}

/// Records the predicted classes of a part of a task's test rows. @param first index of the part's first row in the
/// task
void server_state::record_answers(const task_rows& task, std::size_t first, const evaluate_output& part) {
  for (std::size_t i = 0; i < part.answers.size(); ++i)
    labels_.push_back(context_->tasks->test->label(task.test[first + i]));
  answers_.insert(answers_.end(), part.answers.begin(), part.answers.end());
}

/// Counts rows and correct predictions by label.
void server_state::count_classes(const task_rows& task, std::size_t first, const evaluate_output& part,
                                 std::vector<class_tally>& per_class) const {
  for (std::size_t i = 0; i < part.answers.size(); ++i) {
    const auto label = context_->tasks->test->label(task.test[first + i]);
    auto& tally = per_class.at(static_cast<std::size_t>(label));
    ++tally.rows;
    tally.correct += part.answers[i] == label;
  }
}

caf::result<evaluated> server_state::evaluate_model(const evaluate& in) {
  auto jobs = evaluation_plan(in);
  evaluated sums{.per_task = std::vector<evaluate_output>(in.masks.size())};
  if (in.end_of_task)
    sums.per_class.resize(static_cast<std::size_t>(context_->tasks->classes));
  if (in.with_model)
    sums.model = named_weights();
  auto answer = self_->make_response_promise<evaluated>(); // made after the calls that may throw
  if (jobs.empty()) {
    test_clients(answer, in, std::move(sums));
    return answer;
  }
  labels_.clear();
  answers_.clear();
  party_.steps().run_all(std::move(jobs), [this, answer, in, sums = std::move(sums)](outcomes results) mutable {
    if (is_interrupted(results))
      return answer.deliver(caf::make_error(run_errc::interrupted, std::string(interrupted_text)));
    auto next = results.begin();
    for (std::uint32_t t = 0; t < in.masks.size(); ++t) {
      auto& sum = sums.per_task[t];
      const auto rows = context_->tasks->tasks[t].test.size();
      for (std::size_t first = 0; first < rows; first += tuning::evaluation_rows, ++next) {
        if (auto* reason = std::get_if<std::string>(&*next))
          return answer.deliver(party_.steps().step_error("evaluation", *reason));
        const auto& part = std::get<evaluate_output>(std::get<work_output>(*next));
        sum.rows += part.rows;
        sum.correct += part.correct;
        sum.loss_sum += part.loss_sum;
        if (is_of_all_tasks(in))
          record_answers(context_->tasks->tasks[t], first, part);
        if (in.end_of_task)
          count_classes(context_->tasks->tasks[t], first, part, sums.per_class);
      }
    }
    test_clients(answer, in, std::move(sums));
  });
  return answer;
}

/// Last part of an evaluation: tests the clients' own models if the scenario requests it, and sends the reply.
void server_state::test_clients(const caf::typed_response_promise<evaluated>& answer, const evaluate& in,
                                evaluated sums) {
  auto reply = answer;
  if (!personal_) {
    reply.deliver(std::move(sums));
    return;
  }
  const auto ended = [this, reply, sums = std::move(sums)](client_tests tests) mutable {
    if (tests.interrupted)
      return reply.deliver(caf::make_error(run_errc::interrupted, std::string(interrupted_text)));
    if (!tests.failure.empty())
      return reply.deliver(party_.steps().step_error("evaluation.personal", tests.failure));
    sums.clients = std::move(tests.clients);
    reply.deliver(std::move(sums));
  };
  const auto reason = exception_message_of([&] { personal_->run(in, party_.half(), ended); });
  if (!reason.empty())
    reply.deliver(party_.steps().step_error("evaluation.personal", reason));
}

/// Returns all trained tensors under their names in model files.
tensors_ref server_state::named_weights() const {
  const auto predicted = party_.half().predict();
  const auto* flat = predicted.weights ? predicted.weights->find(flat_weights) : nullptr;
  auto named = flat ? named_parameters(*predicted.net, *flat) : tensor_map{};
  if (predicted.projection.defined())
    named.put(projection_name, predicted.projection.to(at::kFloat));
  if (predicted.readout.defined())
    named.put(readout_name, predicted.readout.contiguous());
  return std::make_shared<const tensor_map>(std::move(named));
}

final_model server_state::named_model() const {
  if (party_.steps().is_interrupted())
    return {};
  auto figures = party_.half().summary_metrics();
  if (!answers_.empty()) {
    const class_answers all_rows{.labels = labels_, .answers = answers_, .classes = context_->tasks->classes};
    figures.merge(class_metrics(all_rows, context_->scenario.seed));
    if (const auto newest = context_->tasks->tasks.back().classes;
        newest.low > 0) // low is 0 if all tasks have the same classes
      figures["new_share"] = predicted_share(all_rows, newest);
  }
  return {
      .model = named_weights(), .summary_metrics = std::move(figures), .sample_images = party_.half().sample_images()};
}

} // namespace mneme
