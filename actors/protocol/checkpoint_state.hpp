/// checkpoint_state: the recorder's part of a checkpoint.
#pragma once
#include "actors/protocol/messages.hpp"
namespace mneme {

void persist(archive& state, class_tally& tally);
void persist(archive& state, personal_accuracies& over);
void persist(archive& state, evaluation_record& line);
void persist(archive& state, accuracy_matrix& matrix);

/// State of the recorder. A resumed run starts with it.
struct recorder_snapshot {
  std::string device{};    ///< Device on which the run computes.
  std::int64_t rounds = 0; ///< Number of closed rounds.
  std::int64_t client_rounds = 0;
  line_lengths lines{}; ///< File lengths at the checkpoint; resuming discards later lines.
  accuracy_matrix matrix{};
  std::vector<evaluation_record> evaluations{};
  timeline course{}; ///< Content of timeline.jsonl.
  double wall_seconds = 0.0, cpu_seconds = 0.0, busy_seconds = 0.0;
  std::int64_t peak_rss_bytes = 0;
  void persist(archive& state);
};

/// State with which a run resumes.
struct resume_state {
  archive run{}; ///< State of scheduler and parties.
  recorder_snapshot recorded{};
};
using resume_state_ref = std::shared_ptr<const resume_state>;

/// The parts of a checkpoint, in their order in the file.
enum checkpoint_part : std::size_t { recorder_part, run_part, checkpoint_parts };

} // namespace mneme
