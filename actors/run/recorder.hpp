/// recorder: actor that writes all files of a run and prints its progress.
#pragma once
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "actors/run/progress.hpp"
#include "runtime/results/live_view.hpp"
namespace mneme {

/// Arguments of the recorder, apart from the run context.
struct recorder_setup {
  std::shared_ptr<run_directory> files{};
  std::shared_ptr<progress> view{};
  std::shared_ptr<live_view> live{}; ///< Live view of the run; may be null.
  accuracy_drawing draw_accuracy{};  ///< Draws accuracy.svg; null: no drawing.
  std::string digest{};              ///< Digest of the scenario.
  checkpoint_writer_actor writer{};  ///< Null: no checkpoints.
  recorder_snapshot past{};          ///< State with which the run resumes; empty for a new run.
  /// Returns one record per node for the summary; null if the run accepts no nodes.
  std::function<std::vector<node_record>()> nodes{};
};

class recorder_state {
public:
  static constexpr const char* name = "mneme.recorder";
  recorder_state(recorder_actor::pointer self, run_context_ref context, recorder_setup setup);
  recorder_actor::behavior_type make_behavior();

private:
  void write(const recorded_events& lines);
  void keep(const kept_values& kept);
  void add(evaluation_record line);
  void save(const std::string& file, const tensor_map& model);
  run_summary finish(const run_report& report);
  caf::result<void> keep(save_checkpoint& others);
  [[nodiscard]] run_summary summary_of(const run_report& report) const;
  [[nodiscard]] double busy_seconds() const { return 1e-9 * static_cast<double>(context_->busy_ns->load()); }
  /// Runs `act`. An exception becomes an error that names the file. After an error only the summary is written.
  template <class Act>
  auto guarded(Act act) -> caf::result<decltype(act())>;

  recorder_actor::pointer self_;
  run_context_ref context_;
  recorder_setup setup_;
  recorder_snapshot past_; // includes the time of earlier processes
  recorder_stopwatch wall_;
  double cpu_before_;                               // CPU seconds of this process that belong to earlier runs
  std::map<std::string, double> summary_metrics_{}; // summary metrics of the method
  tensor_map values_{};                             // values of the dumped round
  std::int64_t values_count_ = 0;                   // number of deliveries in the dumped round
  std::string failure_{}; // reason why a file could not be written; "": all files were written
};

} // namespace mneme
