/// server_half: the server half of a method, and the inputs of its steps.
#pragma once
#include "runtime/method/context.hpp"
#include "runtime/method/round.hpp"
#include <limits>
#include <map>
#include <optional>
namespace mneme {

class archive;

/// Training rows for methods that train on the server.
class central_rows {
public:
  virtual ~central_rows() = default;
  /// All training rows of a task, except public ones.
  [[nodiscard]] virtual sample_view of_task(task_id task) const = 0;
  /// Rows of a task that belong to clients enrolled and active in that task.
  [[nodiscard]] virtual sample_view of_enrolled(task_id task) const = 0;
  /// Rows of a task that no client has (partition.public_share). Reading them does not require server_trains_on_rows.
  [[nodiscard]] virtual sample_view of_public(task_id task) const = 0;
};

/// Inputs of a server step, and the jobs that it may request.
class server_context : public context {
public:
  explicit server_context(job_channel& channel, const central_rows* rows = nullptr,
                          generated_row_store* store = nullptr)
      : context(channel, store), rows_(rows) {}
  /// Training rows. @pre method_needs::server_trains_on_rows, or only public rows are read
  [[nodiscard]] const central_rows& rows() const { return *rows_; }
  /// Queues a warning, which is printed after the step.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

private:
  const central_rows* rows_;
  std::vector<std::string> warnings_;
};

/// Settings of a task that the method may change; the defaults are the scenario's settings.
struct task_plan {
  std::optional<std::int64_t> rounds{}; ///< If set, replaces rounds.per_task.
  bool all_enrolled = false;            ///< All available clients take part; no cohort is drawn.
  bool clients_without_rows = false;    ///< Clients without rows take part, too.
  bool first_enrolled_only = false;     ///< Cohorts contain only clients that were enrolled in the first task.
  /// Number of available clients outside the cohort that observe their rows in each round (strategy::client_observe).
  /// They are drawn like a cohort, and the round waits for them. Synchronous rounds only.
  std::int64_t observers = 0;
};

/// Client id of the server in random keys; no client has it.
inline constexpr client_id server_client_id{std::numeric_limits<std::uint32_t>::max()};

/// The engine makes one call at a time, in the order of virtual time.
class server_half {
public:
  virtual ~server_half() = default;
  /// Called before the first broadcast of a task. May request server jobs. By default, the task has the scenario's
  /// settings.
  /// @param info the task's first round
  virtual task<task_plan> open_task(server_context& ctx, const round_info& info);
  /// Returns the broadcast of a round.
  virtual broadcast open_round(const round_info& info) = 0;
  /// Adds an upload to running sums in float64. Memory must not grow with the number of uploads.
  virtual void fold(const delivery& in) = 0;
  /// Server step at the end of a round with at least one folded upload. May request server jobs.
  virtual task<void> close_round(server_context& ctx, const round_info& info) = 0;
  /// Returns the model to evaluate and save.
  [[nodiscard]] virtual predictor predict() const = 0;
  /// Returns the model for one client, such as the model of the client's cluster, for evaluation.personal. Default:
  /// predict().
  [[nodiscard]] virtual predictor predict_for(client_id /*client*/) const { return predict(); }
  /// Metrics of the method for summary.json, by key; called at the end of the run.
  [[nodiscard]] virtual std::map<std::string, double> summary_metrics() const { return {}; }
  /// Images of the method by name, [1 or 3, H, W] uint8; each is saved as NAME.png in the run directory.
  [[nodiscard]] virtual std::map<std::string, at::Tensor> sample_images() const { return {}; }
  /// Saves or loads all state that calls have changed since construction (runtime/base/archive.hpp). May be called
  /// between any two calls, also within a round.
  virtual void persist(archive& state) = 0;
};

} // namespace mneme
