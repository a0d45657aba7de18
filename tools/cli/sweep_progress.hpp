/// sweep_progress: what a user sees of a sweep: a block for all of its runs, a line per run, or JSON.
#pragma once
#include "actors/run/progress.hpp"
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// How a run of a sweep ended.
struct swept_run {
  std::string label{}, folder{};
  std::string status{}; ///< "done", "failed", "interrupted".
  std::string error{};  ///< Why it failed.
};

class sweep_progress {
public:
  sweep_progress(std::FILE* out, progress_style style) : block_(out), style_(style) {}
  /// @param runs all of the sweep; `kept` of them were done before
  void started(std::size_t runs, std::size_t kept, std::int64_t jobs, std::int64_t threads);
  /// A run begins, or goes on.
  void began(const std::string& label, const std::string& folder, bool resumed);
  /// `shares`: of each run that is at work, by its label, how much of it is done.
  void tick(const std::map<std::string, double>& shares);
  void ended(const swept_run& run);
  void finished();
  /// Where the report of the runs lies, and its first figure.
  void reported(const std::string& page, const std::string& figure);

private:
  void draw(const std::map<std::string, double>& shares);

  terminal_block block_;
  progress_style style_;
  std::size_t runs_ = 0, kept_ = 0, done_ = 0, failed_ = 0;
  recorder_stopwatch began_;
};

} // namespace mneme
