/// progress: what a user sees of a run while it goes on. Wall-clock is read here, in the recorder, and nowhere else.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
#include "actors/run/terminal_block.hpp"
#include "runtime/federation/run_records.hpp"
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
namespace mneme {

/// block: one live block on a terminal; lines: one line per evaluation; json: one JSON object per
/// line; quiet: nothing but failures.
enum class progress_style { block, lines, json, quiet };
/// block if `out` is a terminal, else lines.
[[nodiscard]] progress_style default_style(std::FILE* out);

/// Writes to one stream; never throws, whatever becomes of the stream. A run that failed says why
/// in every style.
class progress {
public:
  /// @param share_done kept at the share of the rounds that is done, whatever the style; may be null
  progress(std::FILE* out, progress_style style, std::atomic<double>* share_done = nullptr);
  /// Title, seed and scenario digest come first. The clock for rates and time left starts here.
  void started(const std::string& title, const std::string& directory, std::int64_t seed,
               const std::string& scenario_digest);
  /// The run goes on, or begins again, in the directory of an earlier one; `text` says where.
  void resumed(const std::string& text, std::int64_t rounds, std::int64_t client_rounds);
  /// Redraws the block at most ten times a second; nothing in the other styles.
  void tick(const progress_snapshot& now);
  /// The same, for a program between two slices.
  void tick(const program_progress& now);
  void evaluated(const evaluation_record& record);
  void warned(const std::string& text);
  /// The accuracy matrix, the main figures, and the run digest last.
  void finished(const run_summary& summary, const accuracy_matrix& matrix);

private:
  [[nodiscard]] double elapsed_s() const;
  [[nodiscard]] std::string block_text() const;
  [[nodiscard]] double share() const;
  void redraw_block();

  terminal_block block_;
  progress_style style_;
  std::atomic<double>* share_done_;
  std::string directory_{};
  progress_snapshot last_{};
  std::optional<program_progress> program_{}; ///< Shown until the run has moved on.
  std::int64_t rounds_done_ = 0;
  std::int64_t rounds_before_ = 0, client_rounds_before_ = 0; ///< Done before this process went on.
  std::optional<double> accuracy_{};                          ///< Accuracy of the latest evaluation.
  recorder_stopwatch began_;
};

} // namespace mneme
