#include "tools/cli/sweep_progress.hpp"
#include "actors/run/report.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t runs_shown = 8;

std::string one_line(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

} // namespace

void sweep_progress::started(std::size_t runs, std::size_t kept, std::int64_t jobs, std::int64_t threads) {
  began_ = {};
  runs_ = runs;
  kept_ = kept;
  if (style_ == progress_style::json)
    return block_.say(
        one_line({{"event", "sweep_started"}, {"runs", runs}, {"kept", kept}, {"jobs", jobs}, {"threads", threads}}));
  if (style_ != progress_style::quiet)
    block_.say(fmt::format("{} runs, {} of them done before; {} at a time, {} thread{} each", runs, kept, jobs, threads,
                           threads == 1 ? "" : "s"));
}

void sweep_progress::began(const std::string& label, const std::string& folder, bool resumed) {
  if (style_ == progress_style::json)
    block_.say(one_line({{"event", "run_started"}, {"run", label}, {"directory", folder}, {"resumed", resumed}}));
}

void sweep_progress::tick(const std::map<std::string, double>& shares) {
  constexpr double redraw_min_s = 0.2;
  if (style_ == progress_style::block && !block_.is_younger_than(redraw_min_s))
    draw(shares);
}

void sweep_progress::draw(const std::map<std::string, double>& shares) {
  double work_done = static_cast<double>(done_ + failed_); // work done by this process, counted in runs
  for (const auto& [label, share] : shares)
    work_done += share;
  const double all = static_cast<double>(runs_), elapsed = began_.seconds();
  const double share = all > 0.0 ? (static_cast<double>(kept_) + work_done) / all : 1.0;
  const auto left =
      work_done > 0.0
          ? elapsed_text(std::max(0.0, elapsed / work_done * (all - static_cast<double>(kept_) - work_done)))
          : std::string("-");
  std::string text = fmt::format("{} {:3.0f} %  {}/{} runs done, {} failed, {} running\n", terminal_bar(share),
                                 100.0 * share, kept_ + done_, runs_, failed_, shares.size());
  std::size_t listed = 0;
  for (const auto& [label, done] : shares)
    if (listed++ < runs_shown)
      text += fmt::format("  {:3.0f} %  {:.60}\n", 100.0 * done, printable(label));
  text += fmt::format("{} elapsed, {} left\n", elapsed_text(elapsed), left);
  block_.draw(text);
}

void sweep_progress::ended(const swept_run& run) {
  if (run.status == "done")
    ++done_;
  else if (run.status == "failed")
    ++failed_;
  if (style_ == progress_style::json) {
    json line{{"event", "run_ended"}, {"run", run.label}, {"directory", run.folder}, {"status", run.status}};
    if (!run.error.empty())
      line["error"] = run.error;
    block_.say(one_line(line));
  } else if (style_ == progress_style::lines) {
    block_.say(fmt::format("{}/{} {}: {}", kept_ + done_ + failed_, runs_, run.label, run.status));
  }
  if (run.status != "failed" || style_ == progress_style::json)
    return;
  block_.erase();
  std::fprintf(stderr, "error: %s: %s\n", printable(run.label).c_str(), printable_message(run.error).c_str());
}

void sweep_progress::finished() {
  block_.erase();
  if (style_ == progress_style::json)
    block_.say(one_line({{"event", "sweep_finished"}, {"done", kept_ + done_}, {"failed", failed_}}));
  else if (style_ != progress_style::quiet)
    block_.say(fmt::format("{} runs done, {} failed, in {}", kept_ + done_, failed_, elapsed_text(began_.seconds())));
}

void sweep_progress::reported(const std::string& page, const std::string& figure) {
  if (style_ == progress_style::json)
    block_.say(one_line({{"event", "report"}, {"page", page}, {"figure", figure}}));
  else if (style_ != progress_style::quiet)
    block_.say(fmt::format("\nreport  {}\nfigure  {}", page, figure));
}

} // namespace mneme
