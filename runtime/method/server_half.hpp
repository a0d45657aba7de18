/// server_half: what the server of a method remembers and does, and what a step of it may see.
#pragma once
#include "runtime/method/context.hpp"
#include "runtime/method/round.hpp"
#include <limits>
#include <map>
#include <optional>
namespace mneme {

class archive;

/// Training rows as a method that trains on the server may ask for them.
class central_rows {
public:
  virtual ~central_rows() = default;
  [[nodiscard]] virtual sample_view of_task(task_id task) const = 0;
  /// The rows of a task that belong to clients which are enrolled and active in it.
  [[nodiscard]] virtual sample_view of_enrolled(task_id task) const = 0;
  /// The rows of a task that no client holds (partition.public_share); a method needs no central data to read them.
  [[nodiscard]] virtual sample_view of_public(task_id task) const = 0;
};

/// What a step of the server may see.
class server_context : public context {
public:
  explicit server_context(job_desk& desk, const central_rows* rows = nullptr, row_store* store = nullptr)
      : context(desk, store), rows_(rows) {}
  /// @pre the method needs central data (method_needs), or reads public rows alone
  [[nodiscard]] const central_rows& rows() const { return *rows_; }
  /// Shown to the user, once the step is over.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

private:
  const central_rows* rows_;
  std::vector<std::string> warnings_;
};

/// How a task is run: what the scenario says, unless the method sets it.
struct task_plan {
  std::optional<std::int64_t> rounds{}; ///< Instead of rounds.per_task.
  bool everybody = false;               ///< Instead of a cohort.
  bool clients_without_rows = false;    ///< They take part too.
  bool first_enrolled_only = false;     ///< Cohorts are drawn from those alone who were enrolled in the first task.
  /// So many of the available clients outside the cohort look at their rows in each round (strategy::client_look),
  /// drawn like a cohort; the round waits for them. Only in rounds with a barrier.
  std::int64_t observers = 0;
};

/// A number that no client has, so that the server's draws differ from every client's.
inline constexpr client_id server_itself{std::numeric_limits<std::uint32_t>::max()};

/// Calls come one at a time, in virtual order.
class server_half {
public:
  virtual ~server_half() = default;
  /// A task begins (`where` is its first round); before its first broadcast. May ask for server jobs. By default the
  /// task runs as the scenario says.
  virtual task<task_plan> open_task(server_context& ctx, const round_place& place);
  /// What the round's clients receive.
  virtual broadcast open_round(const round_place& place) = 0;
  /// Fold the upload into running sums, in float64: memory must not grow with the cohort.
  virtual void fold(const delivery& in) = 0;
  /// The server step: ends a round in which at least one upload was folded. May ask for server jobs.
  virtual task<void> close_round(server_context& ctx, const round_place& place) = 0;
  /// What is evaluated and saved.
  [[nodiscard]] virtual predictor predict() const = 0;
  /// The method's own figures for summary.json, by key, at the end of the run.
  [[nodiscard]] virtual std::map<std::string, double> figures() const { return {}; }
  /// Pictures of what it has made, [1 or 3, H, W] uint8 by name, which the run directory shows as NAME.png.
  [[nodiscard]] virtual std::map<std::string, at::Tensor> pictures() const { return {}; }
  /// All that calls have changed since the constructor, to and from a checkpoint (runtime/base/archive.hpp): between
  /// any two calls, and so in the middle of a round, too.
  virtual void persist(archive& state) = 0;
};

} // namespace mneme
