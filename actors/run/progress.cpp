#include "actors/run/progress.hpp"
#include "actors/run/report.hpp"
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

std::string one_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

/// Inserts the event's name as the first member of `text`, a JSON object.
std::string event_line(const char* event, const std::string& text) {
  json line{{"event", event}};
  line.update(json::parse(text));
  return one_line(line);
}

/// Formats "3/5", or "3" if the total is unknown.
std::string of_total(std::int64_t number, std::int64_t total) {
  return total > 0 ? fmt::format("{}/{}", number, total) : std::to_string(number);
}

/// Formats accuracies in percent, such as "tasks 61.02 80.10". If there are many tasks, lists only the newest ones.
std::string per_task_text(const std::vector<double>& accuracies) {
  constexpr std::size_t listed_max = 10;
  if (accuracies.size() > listed_max)
    return fmt::format("task {} {:.2f}", accuracies.size(), accuracies.back());
  std::string text = "tasks";
  for (double accuracy : accuracies)
    text += fmt::format(" {:.2f}", accuracy);
  return text;
}

/// Formats the training loss, such as ", training loss 0.5210 (cross_entropy 0.5000, proximal 0.0210)". A single term
/// is not listed. Returns "" if there is no training loss.
std::string training_text(const evaluation_record& record) {
  if (!record.training_loss)
    return "";
  auto text = fmt::format(", training loss {:.4f}", *record.training_loss);
  const auto& terms = record.training_loss_terms;
  for (auto term = terms.begin(); terms.size() > 1 && term != terms.end(); ++term)
    text += fmt::format("{}{} {:.4f}", term == terms.begin() ? " (" : ", ", term->first, term->second);
  return text + (terms.size() > 1 ? ")" : "");
}

} // namespace

progress_style default_style(std::FILE* out) {
  const char* kind = std::getenv("TERM");
  const bool moves_cursor = ::isatty(::fileno(out)) && kind && std::string_view(kind) != "dumb";
  return moves_cursor ? progress_style::block : progress_style::lines;
}

progress::progress(std::FILE* out, progress_style style, std::atomic<double>* share_done)
    : block_(out), style_(style), share_done_(share_done) {}

void progress::started(const std::string& title, const std::string& directory, std::int64_t seed,
                       const std::string& scenario_digest) {
  began_ = {};
  directory_ = directory;
  if (style_ == progress_style::json)
    return block_.say(one_line({{"event", "started"},
                                {"title", title},
                                {"seed", seed},
                                {"scenario_digest", scenario_digest},
                                {"directory", directory}}));
  if (!writes_little())
    block_.say(fmt::format("{}{}seed {}\nscenario digest {}", title, title.empty() ? "" : "\n", seed, scenario_digest));
}

void progress::resumed(const std::string& text, std::int64_t rounds, std::int64_t client_rounds) {
  rounds_done_ = rounds_before_ = rounds;
  client_rounds_before_ = client_rounds;
  if (style_ == progress_style::json)
    return block_.say(one_line({{"event", "resumed"}, {"rounds", rounds}, {"text", text}}));
  if (!writes_little())
    block_.say(text);
}

void progress::tick(const progress_snapshot& now) {
  last_ = now;
  program_.reset();
  rounds_done_ = std::max<std::int64_t>(rounds_done_, now.round.value);
  if (share_done_)
    share_done_->store(share(), std::memory_order_relaxed);
  redraw_block();
}

void progress::tick(const program_progress& now) {
  program_ = now;
  redraw_block();
}

void progress::redraw_block() {
  constexpr double redraw_min_s = 0.1;
  if (draws_block() && !block_.is_younger_than(redraw_min_s))
    block_.draw(block_text());
}

void progress::evaluated(const evaluation_record& record) {
  accuracy_ = record.accuracy;
  rounds_done_ = std::max<std::int64_t>(rounds_done_, record.round.value + 1);
  if (style_ == progress_style::json)
    return block_.say(event_line("evaluation", json_text(record)));
  if (style_ != progress_style::lines)
    return;
  block_.say(fmt::format("task {} round {}: accuracy {:.2f} % ({}), loss {:.4f}{}, virtual {}, {} up, {} down",
                         of_total(record.task.value + 1, last_.tasks), of_total(record.round.value + 1, last_.rounds),
                         record.accuracy, per_task_text(record.accuracy_per_task), record.loss, training_text(record),
                         elapsed_text(in_seconds(record.at)), mebibytes_text(record.upload_bytes),
                         mebibytes_text(record.download_bytes)));
}

void progress::warned(const std::string& text) {
  if (style_ == progress_style::json)
    return block_.say(one_line({{"event", "warning"}, {"text", text}}));
  if (!writes_little())
    block_.say("warning: " + text);
}

void progress::finished(const run_summary& summary, const accuracy_matrix& matrix) {
  if (style_ == progress_style::json)
    return block_.say(event_line("finished", json_text(summary)));
  const bool caller_reports_failure = style_ == progress_style::silent || style_ == progress_style::embedded_block;
  if (summary.status == "failed" && caller_reports_failure)
    return;
  if (!writes_little())
    return block_.say(report_text(summary, matrix, directory_));
  if (summary.status == "failed")
    block_.say("error: " + summary.error);
}

double progress::elapsed_s() const { return began_.seconds(); }

double progress::share() const {
  return last_.rounds > 0 ? static_cast<double>(rounds_done_) / static_cast<double>(last_.rounds) : 0.0;
}

std::string progress::block_text() const {
  const double elapsed = std::max(elapsed_s(), 1e-3);
  const auto local_rounds = static_cast<double>(rounds_done_ - rounds_before_); // the rate covers only the rounds of
                                                                                // this process
  const auto missing = static_cast<double>(last_.rounds - rounds_done_);
  const auto left =
      local_rounds > 0.0 && share() > 0.0 ? elapsed_text(std::max(0.0, elapsed / local_rounds * missing)) : "-";
  return fmt::format("{} {:3.0f} %  task {}  round {}  accuracy {}\n", terminal_bar(share()), 100.0 * share(),
                     of_total(last_.task.value + 1, last_.tasks), of_total(last_.round.value + 1, last_.rounds),
                     percent_text(accuracy_)) +
         fmt::format("virtual {}  {} clients in flight{}\n", elapsed_text(in_seconds(last_.at)), last_.in_flight,
                     last_.training_loss ? fmt::format("  training loss {:.4f}", *last_.training_loss) : "") +
         fmt::format("{} client-rounds, {:.1f} per second  {} elapsed, {} left\n", last_.client_rounds,
                     static_cast<double>(last_.client_rounds - client_rounds_before_) / elapsed, elapsed_text(elapsed),
                     left) +
         (program_ ? fmt::format("program '{}': {:3.0f} %\n", program_->name, 100.0 * program_->share) : "");
}

} // namespace mneme
