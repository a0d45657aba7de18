/// progress: prints the progress of a run. Only this file and the recorder read wall-clock time.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/terminal_block.hpp"
#include "runtime/federation/run_records.hpp"
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
namespace mneme {

/// block: a live block on a terminal; lines: one line per evaluation; json: one JSON object per line; quiet: only
/// failures; silent: nothing; embedded_block: the block, without failures. Callers that report failures themselves
/// choose silent or embedded_block.
enum class progress_style { block, lines, json, quiet, silent, embedded_block };
/// Returns block if `out` is a terminal, else lines.
[[nodiscard]] progress_style default_style(std::FILE* out);

/// Writes to one stream and never throws, even if the stream fails. Prints the error of a failed run in every style but
/// silent and embedded_block.
class progress {
public:
  /// @param share_done is set to the share of finished rounds (0 to 1), in every style; may be null
  progress(std::FILE* out, progress_style style, std::atomic<double>* share_done = nullptr);
  /// Prints title, seed and scenario digest. Starts the clock for rates and time left.
  void started(const std::string& title, const std::string& directory, std::int64_t seed,
               const std::string& scenario_digest);
  /// Reports that the run resumes or restarts in an existing directory. @param text message with the starting point
  void resumed(const std::string& text, std::int64_t rounds, std::int64_t client_rounds);
  /// Redraws the block at most ten times per second; no effect in other styles.
  void tick(const progress_snapshot& now);
  /// Redraws the block with the progress of a program, between two of its slices.
  void tick(const program_progress& now);
  void evaluated(const evaluation_record& record);
  void warned(const std::string& text);
  /// Prints the accuracy matrix, the main metrics, and the run digest as the last line.
  void finished(const run_summary& summary, const accuracy_matrix& matrix);

private:
  [[nodiscard]] double elapsed_s() const;
  [[nodiscard]] std::string block_text() const;
  [[nodiscard]] double share() const;
  void redraw_block();
  [[nodiscard]] bool draws_block() const noexcept {
    return style_ == progress_style::block || style_ == progress_style::embedded_block;
  }
  [[nodiscard]] bool writes_little() const noexcept {
    return style_ == progress_style::quiet || style_ == progress_style::silent;
  }

  terminal_block block_;
  progress_style style_;
  std::atomic<double>* share_done_;
  std::string directory_{};
  progress_snapshot last_{};
  std::optional<program_progress> program_{}; ///< Printed until the next snapshot of the run.
  std::int64_t rounds_done_ = 0;
  std::int64_t rounds_before_ = 0, client_rounds_before_ = 0; ///< Counts when this process started.
  std::optional<double> accuracy_{};                          ///< Accuracy of the latest evaluation, in percent.
  recorder_stopwatch began_;
};

} // namespace mneme
