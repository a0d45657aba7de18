/// sweep_progress: prints the progress of a sweep as one block for all runs, one line per run, or JSON.
#pragma once
#include "actors/run/progress.hpp"
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// Result of a run of a sweep.
struct swept_run {
  std::string label{}, folder{};
  std::string status{}; ///< "done", "failed", "interrupted".
  std::string error{};  ///< Reason of a failure.
};

class sweep_progress {
public:
  sweep_progress(std::FILE* out, progress_style style) : block_(out), style_(style) {}
  /// @param runs number of runs of the sweep @param kept number of runs that were completed before
  void started(std::size_t runs, std::size_t kept, std::int64_t jobs, std::int64_t threads);
  /// Reports that a run starts or is resumed.
  void began(const std::string& label, const std::string& folder, bool resumed);
  /// Updates the block. @param shares progress of each active run, 0 to 1, by label
  void tick(const std::map<std::string, double>& shares);
  void ended(const swept_run& run);
  void finished();
  /// Prints the paths of the report and of its first figure.
  void reported(const std::string& page, const std::string& figure);

private:
  void draw(const std::map<std::string, double>& shares);

  terminal_block block_;
  progress_style style_;
  std::size_t runs_ = 0, kept_ = 0, done_ = 0, failed_ = 0;
  recorder_stopwatch began_;
};

} // namespace mneme
