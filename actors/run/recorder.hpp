/// recorder: writes everything a run leaves behind, and shows its progress.
#pragma once
#include "actors/protocol/checkpoint_state.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/recorder_clock.hpp"
#include "actors/protocol/run_context.hpp"
#include "actors/run/progress.hpp"
#include "runtime/results/live_view.hpp"
namespace mneme {

/// What the recorder is given besides its world.
struct recorder_setup {
  std::shared_ptr<run_directory> files{};
  std::shared_ptr<progress> view{};
  std::shared_ptr<live_view> live{}; ///< Null: nobody follows the run.
  accuracy_drawing draw_accuracy{};  ///< Null: no accuracy.svg is written.
  std::string digest{};              ///< Digest of the scenario.
  checkpoint_writer_actor writer{};  ///< Null: no checkpoints.
  recorded_past past{};              ///< Empty: the run begins.
  /// What the summary says of nodes; null: there are none.
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
  caf::result<void> keep(keep_state& others);
  [[nodiscard]] run_summary summary_of(const run_report& report) const;
  [[nodiscard]] double busy_seconds() const { return 1e-9 * static_cast<double>(context_->busy_ns->load()); }
  /// Runs `act`; what it throws becomes an error that names the file. After one, only the summary is still written.
  template <class Act>
  auto guarded(Act act) -> caf::result<decltype(act())>;

  recorder_actor::pointer self_;
  run_context_ref context_;
  recorder_setup setup_;
  recorded_past past_; // times are those before this process went on
  recorder_stopwatch wall_;
  double cpu_before_;                       // seconds of this process that earlier runs have counted
  std::map<std::string, double> figures_{}; // the method's own
  tensor_map values_{};                     // of the round whose values are kept
  std::int64_t values_count_ = 0;           // of its deliveries
  std::string failure_{};                   // why something could not be written; "": all of it was
};

} // namespace mneme
