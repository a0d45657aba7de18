#include "actors/run/dry_run.hpp"
#include "actors/compute/training_rows.hpp"
#include "actors/scheduler/federation_settings_of.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/federation.hpp"
#include "runtime/method/client_round_runner.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include "runtime/method/upload_size.hpp"
#include "runtime/population/client_table.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <limits>
namespace mneme {
namespace {

/// Settings of the federation, without checkpoints, traces and memory limits.
federation_settings settings_of(const run_context& run) {
  constexpr auto any = std::numeric_limits<std::int64_t>::max();
  auto settings = federation_settings_of(run);
  settings.shards = 1;
  settings.other_parties.clear();
  settings.ahead_bytes_max = settings.results_bytes_max = any;
  settings.memory_bytes_max = 0;
  settings.checkpoint.every = 0;
  settings.trace = false;
  return settings;
}

enum class played_part {
  whole,
  certain, ///< Stops at the first event that depends on computed values; times are lower bounds.
};

class player {
public:
  explicit player(const run_context& run, played_part part = played_part::whole)
      : run_(run), rows_(run), wire_(run.scenario.devices.transfer_dtype), federation_(settings_of(run)), part_(part) {
    played_.exact = run.needs.upload_size_known || part == played_part::certain;
    if (played_.exact)
      ask_method([&] { half_ = run.method->make_server(); });
  }

  dry_run_result play() {
    federation_.begin();
    while (!is_over_) {
      take_commands();
      if (waiting_.empty()) {
        played_.report = {.status = run_status::failed, .error = "it would wait forever"};
        break;
      }
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      std::visit([this](auto& command) { serve(command); }, next);
      if (part_ == played_part::certain && !played_.exact)
        break; // later events depend on values that are not computed
    }
    return std::move(played_);
  }

private:
  struct client_at_work {
    client_id client{};
    tensors_ref upload{};
  };

  void take_commands() {
    federation_.take_commands(taken_);
    for (auto& command : taken_)
      waiting_.push_back(std::move(command));
  }

  // -- requests to shards

  void serve(start_rounds& wave) {
    if (part_ == played_part::certain && !half_ && !wave.assignments.empty())
      return void(played_.exact = false); // the cohort and the broadcast depend on a job's result
    wave_report report{.from = wave.to};
    for (auto& given : wave.assignments) {
      auto& at_work = at_work_[given.id] = {.client = given.client, .upload = given.in->weights};
      const auto id = given.id;
      const auto client = given.client;
      if (const auto rows = stage_of(std::move(given)))
        report.issued.push_back({.id = {id, 0, 0},
                                 .rows = *rows,
                                 .compute_duration = run_.population->devices().compute_time(
                                     client, {.rows = *rows, .begins_round = true})});
      else
        finish(id, at_work, report);
    }
    played_.in_flight_max = std::max<std::int64_t>(played_.in_flight_max, std::ssize(at_work_));
    if (!wave.at_once)
      return end_wave(report);
    wave_report part{.from = wave.to, .issued = report.issued, .last = false};
    part.released.emplace();
    if (!part.issued.empty())
      part.released->emplace_back();
    for (const auto& job : part.issued)
      part.released->front().push_back(job.id);
    report.issued.clear();
    for (const auto& job : part.issued)
      finish(job.id.assignment, at_work_.at(job.id.assignment), report);
    federation_.handle(part);
    end_wave(report);
  }

  void serve(release& command) {
    wave_report report{.from = command.to};
    for (const auto& batch : command.batches)
      for (const auto& id : batch)
        finish(id.assignment, at_work_.at(id.assignment), report);
    end_wave(report);
  }

  void serve(abandon& command) {
    for (const auto id : command.assignments)
      at_work_.erase(id);
  }

  /// Size of an upload in bytes. If it is unknown, returns a lower bound. The bound is 1 byte, because a link without
  /// capacity delays even 1 byte. On a shared server link it is 0, because an upload of 1 byte would slow down other
  /// transfers.
  std::int64_t upload_bytes_of(const client_at_work& client) const {
    if (run_.needs.upload_size_known)
      return wire_bytes(client.upload.get(), wire_);
    if (changes_upload_bytes(run_.scenario.uploads) && run_.scenario.strategy.method->needs().upload_size_known)
      return upload_bytes(client.upload.get(), run_.scenario, *run_.net);
    return run_.population->devices().server_mbit(link_direction::up) > 0.0 ? 0 : 1;
  }

  void finish(assignment_id id, const client_at_work& client, wave_report& report) {
    // A synchronous round without a deadline waits for its whole cohort, so the sizes of its uploads do not matter.
    if (part_ == played_part::certain &&
        (run_.scenario.rounds.mode == round_mode::async || run_.scenario.rounds.deadline.count() > 0))
      played_.exact = false;
    const auto bytes = upload_bytes_of(client);
    played_.upload_bytes_of_client = std::max(played_.upload_bytes_of_client, bytes);
    report.finished.push_back({.id = id, .result = {.upload = client.upload, .rows = 1}, .bytes = {bytes}});
  }

  void end_wave(wave_report& report) {
    std::sort(report.finished.begin(), report.finished.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (const auto& done : report.finished)
      at_work_.erase(done.id);
    federation_.handle(report);
  }

  /// Returns the rows that determine the duration of the client's first jobs, and counts their work; nullopt if the
  /// client requests no job.
  std::optional<std::int64_t> stage_of(assignment given) {
    const auto classes = given.in->info.seen_classes;
    if (!half_) {
      const auto rows = run_.rows->size(given.client, given.task);
      const auto& training = run_.scenario.training;
      played_.client_rows[{.classes = classes, .trains = true, .part = run_.scenario.model.trainable}] +=
          static_cast<double>(rows * training.epochs);
      return rows * std::max<std::int64_t>(training.epochs, 1);
    }
    given.samples = run_.rows->view(given.client, given.task);
    client_round_runner round(*run_.method, std::move(given), run_.generated_rows.get());
    auto step = round.start();
    const auto* jobs = std::get_if<plan>(&step);
    if (!jobs)
      return std::nullopt;
    std::int64_t longest = 0; // jobs of one stage run in parallel in virtual time, so the longest one counts
    for (const auto& job : *jobs) {
      count(job);
      longest = std::max(longest, rows_of(job));
    }
    return longest;
  }

  void count(const work& request) {
    if (part_ == played_part::certain)
      return;
    const auto* const job = std::get_if<train_job>(&request);
    if (!job)
      return void(played_.exact = false);
    const auto& with = job->options;
    const auto rows = job->samples.size();
    const auto batch = with.batch_rows > 0 ? with.batch_rows : std::max<std::int64_t>(rows, 1);
    const auto taken = drops_short_step(with) ? rows / batch * batch : rows;
    const auto own = static_cast<double>(taken * with.epochs);
    const auto steps = with.batch_rows > 0 ? std::ceil(static_cast<double>(taken) / static_cast<double>(batch)) : 1.0;
    const auto replayed = steps * static_cast<double>(with.epochs * with.replay_rows);
    const auto teacher_classes = with.teachers.empty() ? class_range{} : with.teachers.front().classes;
    played_.client_rows[{
        .classes = with.classes, .teacher_classes = teacher_classes, .trains = true, .part = with.trained}] +=
        own + replayed;
  }

  // -- requests to the server

  /// Calls the method. If it throws, its messages count as unknown; the run will report the error.
  template <class Call>
  void ask_method(Call call) {
    if (!exception_message_of(call).empty())
      forget_method();
  }

  /// From now on, treats each client round as one training of the run's net.
  void forget_method() {
    half_ = nullptr;
    if (part_ == played_part::whole)
      played_.exact = false;
  }

  /// Plan of a task. Returns nullopt if the plan depends on a job of the server, because no job is run.
  std::optional<task_plan> plan_of(const round_info& where) {
    std::optional<task_plan> plan;
    job_channel channel;
    server_context context(channel, &rows_, run_.generated_rows.get());
    auto step = half_->open_task(context, where);
    step.start();
    if (step.done())
      plan = step.take();
    return plan;
  }

  void serve(open_task& in) {
    std::optional<task_plan> opened;
    if (half_)
      ask_method([&] { opened = plan_of(in.where); });
    if (!opened)
      forget_method();
    // If the plan is unknown, assume that all clients may take part: no smaller set can have more clients online.
    const bool is_certain = part_ == played_part::certain;
    federation_.handle(opened.value_or(task_plan{.clients_without_rows = is_certain}));
  }

  void serve(open_round& in) {
    broadcast sent{.weights = whole_net()};
    if (half_)
      ask_method([&] { sent = half_->open_round(in.where); });
    opened_round answer{.bytes = wire_bytes(sent.weights.get(), wire_) + wire_bytes(sent.extra.get(), wire_) +
                                 masked_bytes(run_.scenario).down,
                        .initial_payload_bytes = wire_bytes(sent.initial_payload.get(), wire_)};
    sent.info = in.where;
    answer.in = std::make_shared<const broadcast>(std::move(sent));
    federation_.handle(answer);
  }

  tensors_ref whole_net() {
    if (!net_)
      net_ = weights_only(at::zeros({run_.net->size()}, at::kFloat));
    return net_;
  }

  void serve(deliveries& in) {
    if (in.ack_when_folded)
      federation_.on_uploads_folded();
  }

  /// Omits the server half's step: nothing was folded, and the step's jobs take no virtual time. Later broadcasts have
  /// the size that they have after a round without uploads.
  void serve(take_step&) {
    if (part_ == played_part::certain)
      return void(played_.exact = false); // the step depends on the uploads
    federation_.handle(step_taken{});
  }

  void serve(evaluate& in) {
    ++played_.evaluations;
    evaluated sums;
    for (std::size_t t = 0; t < in.masks.size(); ++t) {
      const auto rows = std::ssize(run_.tasks->tasks[t].test);
      played_.evaluated_rows[{.classes = in.masks[t]}] += static_cast<double>(rows);
      sums.per_task.push_back({.rows = rows});
    }
    federation_.handle(sums);
  }

  void serve(save_state& in) {
    saved_state answer{.state = std::move(in.so_far)};
    federation_.handle(answer);
  }

  // -- other requests

  void serve(save_checkpoint&) { federation_.on_checkpoint_written(); }
  void serve(pause) { federation_.continue_events(); }
  void serve(run_report& ended) {
    played_.report = std::move(ended);
    is_over_ = true;
  }
  template <class Ignored>
  void serve(Ignored&) {}

  const run_context& run_;
  training_rows rows_;
  wire_format wire_;
  federation federation_;
  const played_part part_;
  std::unique_ptr<server_half> half_; // null: the sizes of the method's messages are unknown
  tensors_ref net_{};
  std::vector<federation_command> taken_;
  std::deque<federation_command> waiting_;
  std::map<assignment_id, client_at_work> at_work_;
  dry_run_result played_;
  bool is_over_ = false;
};

/// Returns the report of the run if the end of the run is known before it begins; otherwise nullopt.
std::optional<run_report> certain_report(const run_context& run) {
  if (run.needs.upload_size_known)
    if (auto whole = player(run).play(); whole.exact)
      return std::move(whole.report);
  auto begun = player(run, played_part::certain).play();
  return begun.exact ? std::optional(std::move(begun.report)) : std::nullopt;
}

client_table_format key_form_of(const run_context& run, const char* key, const std::filesystem::path& file) {
  return {.file = file, .where = run.scenario.where(key), .clients = run.scenario.clients.count};
}

/// Error for a run whose availability traces end too early. @pre the run has a devices.availability_file
diagnostic unreachable_round_error(const run_context& run, std::int64_t round) {
  const auto form = key_form_of(run, "devices.availability_file", run.scenario.devices.availability_file);
  constexpr auto expected = "expected traces as long as the run, or devices.trace_end = \"repeat\"";
  if (const auto ends = last_span_of(form))
    return {ends->where,
            fmt::format("client {} has the last trace, which ends at {} s; round {} finds no client after that; {}",
                        ends->client.value, ends->ends_s, round, expected)};
  return {form.where, fmt::format("'{}' has no spans, so no client is ever reachable; expected spans of clients",
                                  form.file.string())};
}

} // namespace

expected<dry_run_result> dry_run(const run_context& run) {
  auto played = player(run).play();
  if (played.report.status != run_status::done)
    return failed(run.scenario.file, "the run would fail: " + played.report.error);
  return played;
}

diagnostics check_trace_ends(const run_context& run) {
  if (!run.population->devices().link_traces_end() && !run.population->availability_traces_end())
    return {};
  const auto report = certain_report(run);
  if (!report || report->status != run_status::failed)
    return {};
  if (report->no_reachable_clients)
    return {unreachable_round_error(run, report->rounds + 1)};
  if (report->waits_for)
    if (const auto ends =
            last_span_of(key_form_of(run, "devices.link_file", run.scenario.devices.link_file), report->waits_for))
      return {
          {ends->where, fmt::format("client {}: its trace ends at {} s, but round {} still waits for it; expected a "
                                    "trace as long as the run, devices.trace_end = \"repeat\", or a rounds.deadline",
                                    ends->client.value, ends->ends_s, report->rounds + 1)}};
  return {};
}

} // namespace mneme
