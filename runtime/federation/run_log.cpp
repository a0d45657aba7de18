#include "runtime/federation/run_log.hpp"
#include "runtime/federation/persisted_values.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr std::size_t lines_held_max = 4096; // number of lines buffered before they are sent to the recorder

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

void run_log::record(virtual_time at, const event_place& place, const char* actor, const char* event,
                     std::optional<client_id> client, std::int64_t bytes) {
  if (trace_)
    lines_.events.push_back({.at = at,
                             .actor = actor,
                             .event = event,
                             .client = client,
                             .task = place.task,
                             .round = place.round,
                             .bytes = bytes});
}

bool run_log::has_many_events() const noexcept { return lines_.size() >= lines_held_max; }

void run_log::trace(virtual_time at, const char* party, const delivery& sent) {
  if (!sent.upload)
    return;
  const auto round = report_.rounds + 1;
  if (trace_) {
    trace_digest_.add(digest_of(*sent.upload));
    for (const auto& [name, value] : *sent.upload) {
      tensor_map alone;
      alone.put(name, value);
      lines_.deliveries.push_back(
          {.at = at, .round = round, .party = party, .client = sent.from, .tensor = name, .digest = digest_of(alone)});
    }
  }
  if (round == dumped_round_)
    lines_.values.push_back({.round = round, .client = sent.from, .party = party, .values = sent.upload});
}

void run_log::delivered(virtual_time at, const delivery& upload, std::int64_t bytes) {
  digest_.add(static_cast<std::int64_t>(at.time_since_epoch().count()));
  digest_.add(std::uint64_t{upload.from.value});
  digest_.add(std::uint64_t{upload.started_from.value});
  digest_.add(upload.rows);
  digest_.add(bytes);
  trace(at, row_of(party_id::server).name, upload);
  report_.upload_bytes += bytes;
  ++report_.client_rounds;
  report_.staleness_sum += upload.staleness;
  report_.staleness_max = std::max(report_.staleness_max, upload.staleness);
}

void run_log::received(virtual_time at, party_id where, const delivery& sent, std::int64_t bytes) {
  digest_.add(static_cast<std::int64_t>(at.time_since_epoch().count()));
  digest_.add(std::uint64_t{sent.from.value});
  digest_.add(std::uint64_t{sent.started_from.value});
  digest_.add(bytes);
  trace(at, row_of(where).name, sent);
  report_.*row_of(where).bytes_to += bytes;
}

void run_log::ended_activity(virtual_time at, client_id client) {
  digest_.add(static_cast<std::int64_t>(at.time_since_epoch().count()));
  digest_.add(std::uint64_t{client.value});
  ++report_.observations;
}

void run_log::counted(const std::map<std::string, double>& counts) {
  for (const auto& [name, count] : counts)
    report_.counts[name] += count;
}

void run_log::trained(const std::shared_ptr<const training_losses>& losses) {
  if (losses)
    open_losses_.add(*losses);
}

void run_log::advised(party_id who, const step_taken& step) {
  digest_.add(step.digest);
  report_.*row_of(who).bytes_to += step.model_bytes;
}

void run_log::stepped(virtual_time at, const step_taken& step) {
  digest_.add(step.digest);
  lines_.steps.push_back({.at = at,
                          .round = report_.rounds,
                          .deliveries = report_.client_rounds,
                          .model = step.digest,
                          .run = digest_.value()});
  if (step.kept)
    lines_.values.push_back({.round = report_.rounds, .values = step.kept});
}

evaluation_record run_log::add_evaluation(const evaluated& sums) {
  evaluation_record line;
  std::int64_t rows = 0, correct = 0;
  for (const auto& task : sums.per_task) {
    rows += task.rows;
    correct += task.correct;
    line.loss += task.loss_sum;
    line.accuracy_per_task.push_back(percent(task.correct, task.rows));
    line.rows_per_task.push_back(task.rows);
  }
  line.accuracy = percent(correct, rows);
  line.loss = rows == 0 ? 0.0 : line.loss / static_cast<double>(rows);
  digest_.add(line.accuracy);
  for (const auto accuracy : line.accuracy_per_task)
    digest_.add(accuracy);
  digest_.add(line.loss);

  if (sums.clients) {
    for (const auto& test : *sums.clients) {
      digest_.add(std::uint64_t{test.client.value});
      for (const auto count : {test.train_rows, test.test_rows, test.correct_before, test.correct})
        digest_.add(count);
    }
    line.clients = *sums.clients;
    line.personal = personal_accuracies_of(line.clients);
  }
  line.training_loss = step_losses_.mean();
  line.training_loss_terms = step_losses_.term_means();
  line.upload_bytes = report_.upload_bytes;
  line.download_bytes = report_.download_bytes;
  line.client_rounds = report_.client_rounds;
  line.late_uploads = report_.late_uploads;
  line.dropped = report_.dropped;
  return line;
}

void run_log::released(const std::vector<shard_batches>& batches) {
  for (const auto& at_shard : batches)
    for (const auto& batch : at_shard.batches) {
      ++report_.batches;
      report_.jobs += std::ssize(batch);
      for (std::size_t i = 0; trace_ && i < batch.size(); ++i) {
        trace_digest_.add(static_cast<std::uint64_t>(i));
        trace_digest_.add(batch[i].assignment.value);
        trace_digest_.add((std::uint64_t{batch[i].stage} << 32) | batch[i].step);
      }
    }
}

void run_log::mark(virtual_time at) {
  mark_ = {.report = report_,
           .digest = digest_,
           .trace_digest = trace_digest_,
           .open_losses = open_losses_,
           .events = lines_.events.size(),
           .steps = lines_.steps.size(),
           .deliveries = lines_.deliveries.size(),
           .values = lines_.values.size(),
           .at = at};
}

virtual_time run_log::return_to_mark() {
  report_ = mark_.report;
  digest_ = mark_.digest;
  trace_digest_ = mark_.trace_digest;
  open_losses_ = mark_.open_losses;
  lines_.events.resize(mark_.events);
  lines_.steps.resize(mark_.steps);
  lines_.deliveries.resize(mark_.deliveries);
  lines_.values.resize(mark_.values);
  return mark_.at;
}

run_report run_log::ended(run_status status, std::string error, virtual_time at) {
  report_.status = status;
  report_.error = std::move(error);
  report_.ended = at;
  report_.digest = digest_.value();
  report_.trace_digest = trace_digest_.value();
  return std::move(report_);
}

void run_log::persist(archive& state) { state(report_)(digest_)(trace_digest_)(open_losses_)(step_losses_); }

} // namespace mneme
