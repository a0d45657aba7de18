/// strategy: a method. The client half is a coroutine, the server half a fold and a step. No CAF here.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/method/context.hpp"
#include "runtime/settings/scenario.hpp"
#include <filesystem>
#include <map>
#include <optional>
namespace mneme {

class archive;

/// Where in the run a round stands.
struct round_place {
  round_id round{};
  task_id task{};
  std::int64_t round_of_task = 0; ///< From 0.
  std::int64_t rounds_of_task = 1;
  class_range opened{};  ///< Classes of the tasks opened so far.
  class_range current{}; ///< Classes of this task; for methods that ask for an oracle, and `finetune`.
};

/// What the server sends to every client of a round. Frozen: shared by all of them.
struct broadcast {
  round_place place{}; ///< Filled by the engine; where clients change task one by one, with the task the client is in.
  tensors_ref weights{};
  tensors_ref extra{}; ///< Whatever else the method sends every round; may be null.
  tensors_ref once{};  ///< Sent to each client with its first dispatch only (a frozen encoder); may be null.
};
using broadcast_ref = std::shared_ptr<const broadcast>;

/// All that a client's round depends on: the same assignment gives the same result, always.
struct assignment {
  assignment_id id{};
  client_id client{};
  broadcast_ref in{};
  memory_ref memory{};
  sample_view samples{};
  std::uint64_t seed = 0;
  std::uint32_t visit = 0; ///< Earlier assignments of this client.
};

/// What a round ends with.
struct client_result {
  tensors_ref upload{};  ///< Travels to the server.
  memory_ref memory{};   ///< Replaces the client's memory on delivery; null: memory stays.
  std::int64_t rows = 0; ///< Weight of the upload in an average: the client's rows, whatever the epochs.
};

/// One upload that has reached the server.
struct delivery {
  assignment_id assignment{};
  client_id from{};
  round_id started_from{}; ///< The round of its broadcast; older than the open one: kept although late.
  tensors_ref upload{};
  std::int64_t rows = 0;
  // Where the server steps as uploads come (rounds.mode = "async"):
  tensors_ref start{};           ///< The weights of its broadcast, shared; null in rounds with a barrier.
  std::int64_t staleness = 0;    ///< Server steps since that broadcast.
  double staleness_weight = 1.0; ///< s_k, by the scenario's rule.
};

/// What a client's round may see. Lives as long as the round.
class client_context : public context {
public:
  client_context(job_desk& desk, const assignment& what) : context(desk), what_(what) {}
  [[nodiscard]] client_id self() const noexcept { return what_.client; }
  [[nodiscard]] const sample_view& samples() const noexcept { return what_.samples; }
  /// Empty before the first delivered round.
  [[nodiscard]] const tensor_map& memory() const noexcept;
  /// `what`: a method's own purpose, from first_method_purpose on.
  [[nodiscard]] rng_key stream(std::uint32_t what) const noexcept {
    return {what_.seed, what, what_.client, what_.in->place.task, what_.visit, 0};
  }
  /// The stream below which training shuffles and augments.
  [[nodiscard]] rng_key training_stream() const noexcept { return key_for(stream(0), purpose::shuffle); }

private:
  const assignment& what_;
};

/// Training rows as a method that trains on the server may ask for them.
class central_rows {
public:
  virtual ~central_rows() = default;
  /// All rows of a task.
  [[nodiscard]] virtual sample_view all(task_id which) const = 0;
  /// Those of the clients that are enrolled and active in it.
  [[nodiscard]] virtual sample_view enrolled(task_id which) const = 0;
};

/// What a step of the server may see.
class server_context : public context {
public:
  explicit server_context(job_desk& desk, const central_rows* rows = nullptr) : context(desk), rows_(rows) {}
  /// @pre the method declares central_data()
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
  bool clients_without_rows = false;    ///< Whether they take part too.
};

/// What the server remembers and does. Calls come one at a time, in virtual order.
class server_half {
public:
  virtual ~server_half() = default;
  /// A task begins (`where` is its first round); before its first broadcast. May ask for server jobs.
  virtual task<task_plan> open_task(server_context& ctx, const round_place& where) = 0;
  /// What the round's clients receive.
  virtual broadcast open_round(const round_place& where) = 0;
  /// Fold the upload into running sums, in float64: memory must not grow with the cohort.
  virtual void fold(const delivery& in) = 0;
  /// Ends a round in which at least one upload was folded: the server step. The value is unused.
  virtual task<bool> close_round(server_context& ctx, const round_place& where) = 0;
  /// What is evaluated and saved.
  [[nodiscard]] virtual predictor predict() const = 0;
  /// The method's own figures for summary.json, by key, at the end of the run.
  [[nodiscard]] virtual std::map<std::string, double> figures() const { return {}; }
  /// All that calls have changed since the constructor, to and from a checkpoint (runtime/base/archive.hpp): between
  /// any two calls, and so in the middle of a round, too.
  virtual void persist(archive& all) = 0;
};

/// What a method is told before the run.
struct method_setup {
  model_ref net{};
  tensors_ref initial{}; ///< Initial weights: seed, seed_weights or pretrained.
  training_section training{};
  trainable_part trainable = trainable_part::all;
  upload_weighting weighting = upload_weighting::samples;
  rounds_section rounds{}; ///< Whether and how the server steps as uploads come.
  bool oracle = false;
  std::int64_t tasks = 0;
  std::int64_t classes = 0;                ///< Of the run.
  std::array<std::int64_t, 3> shape{};     ///< C, H, W of the data.
  std::vector<class_range> task_classes{}; ///< [tasks] labels that occur in each.
  std::int64_t clients = 0;
  std::uint64_t seed = 0;
  std::map<std::string, tensor_map> files{}; ///< What strategy::tensor_files() asked for, by key.
};

/// Which training rows a client's context shows.
enum class rows_shown : std::uint8_t {
  current,     ///< Of its current task.
  cumulative,  ///< Of all tasks so far in which it was enrolled (`joint`).
  centralised, ///< Everybody's, cumulative, shown to client 0 alone, who is the whole cohort.
  offline,     ///< The same, but of all tasks of the run from the first one on.
};

/// A named set of defaults, as TOML in any section. Keys the user gives win.
struct preset {
  std::string name{};
  std::string meaning{};
  std::string toml{};
};

/// A method, made once per run and then const: shared by all clients and all threads.
class strategy {
public:
  virtual ~strategy() = default;
  /// Binds the method's own keys of [strategy] to its options. Called first.
  virtual void keys(key_table&) {}
  [[nodiscard]] virtual std::vector<preset> presets() const { return {}; }
  /// Defaults in any section that the method has in place of the usual ones, as TOML; below every preset. Keys that
  /// are words have been read by then.
  [[nodiscard]] virtual std::string defaults() const { return {}; }
  /// safetensors files that keys of the method name, by key; they are read before prepare().
  [[nodiscard]] virtual std::map<std::string, std::filesystem::path> tensor_files() const { return {}; }
  /// Where features of frozen nets are kept between runs; empty: nowhere.
  [[nodiscard]] virtual std::filesystem::path feature_folder() const { return {}; }
  /// The head that nets are built with.
  [[nodiscard]] virtual head_kind head() const { return head_kind::linear; }
  /// A net of the method's own, instead of the scenario's [model]; null: there is none.
  [[nodiscard]] virtual model_ref own_net(std::array<std::int64_t, 3> /*shape*/, std::int64_t /*classes*/) const {
    return nullptr;
  }
  /// Whether the server trains on training rows, which the report says: no federation then.
  [[nodiscard]] virtual bool central_data() const { return false; }
  /// The column of partition.file that tells a client's rows apart (`sample_view::marks`), if one is wanted.
  [[nodiscard]] virtual row_mark_column row_marks() const { return {}; }
  [[nodiscard]] virtual rows_shown rows() const { return rows_shown::current; }
  /// Whether the server step needs the uploads of one broadcast, all of them at hand: then the method is refused where
  /// the server steps as uploads come.
  [[nodiscard]] virtual bool needs_round_barrier() const { return false; }
  /// Whether a client's round is one job, behind which it uploads as many bytes as the broadcast's weights have: then
  /// virtual time needs no client's result before its upload arrives, and uploads are folded while others are computed.
  [[nodiscard]] virtual bool foretells_uploads() const { return false; }
  /// Why the method cannot run with this model, in words and with the likely fix; empty: it can.
  [[nodiscard]] virtual std::string objection(const model& /*net*/) const { return {}; }
  /// What is wrong with the method's keys, files and sections taken together; `where` of a finding is a key
  /// ("strategy.ridge") or a file. Called before prepare(); empty: nothing.
  [[nodiscard]] virtual findings objections(const method_setup& /*setup*/) const { return {}; }
  /// Called once, after the keys were read and the model built.
  virtual void prepare(const method_setup& setup) = 0;
  /// One round of one client, as a pure function of `ctx` and `in`; both outlive it. It may be
  /// dropped at any co_await, and run again from the start after a crash, so it must not touch
  /// anything else. Between two awaits it may change threads: no lock and no NoGradGuard across one.
  virtual task<client_result> client_round(client_context& ctx, const broadcast& in) const = 0;
  [[nodiscard]] virtual std::unique_ptr<server_half> make_server() const = 0;
};

struct strategy_entry {
  std::string name{};
  std::string summary{}; ///< One line with its paper, for `mneme list strategies`.
  std::unique_ptr<strategy> (*make)() = nullptr;
};
/// `const strategy_registration line{{.name = "fedavg", .summary = "...", .make = ...}};`
struct strategy_registration {
  explicit strategy_registration(strategy_entry entry);
};
[[nodiscard]] std::vector<strategy_entry> strategies(); ///< Sorted by name.

} // namespace mneme
