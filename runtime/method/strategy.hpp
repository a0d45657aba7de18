/// strategy: a method. Its client half is a coroutine; its server half folds uploads and steps the model. No CAF here.
#pragma once
#include "runtime/base/available_memory.hpp"
#include "runtime/method/client_context.hpp"
#include "runtime/method/method_needs.hpp"
#include "runtime/method/proxy_half.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
#include <limits>
namespace mneme {

/// A foreign module as a net without a head, with the weights of its file.
struct loaded_module {
  model_ref net{};
  tensors_ref weights{};               ///< `flat_weights` [P]
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of its rows.
};

/// Settings that a method receives before the run.
struct method_setup {
  model_ref net{};
  tensors_ref initial{};        ///< Initial weights: drawn, seed_weights or pretrained. Null in strategy::check().
  tensors_ref initial_behind{}; ///< Initial weights of strategy::net_behind() from seed_weights; null: they are drawn.
  training_section training{};
  trainable_part trainable = trainable_part::all;
  upload_weighting weighting = upload_weighting::samples;
  double keep_share = 0.0; ///< Share of the old model in the step of an averaging server.
  rounds_section rounds{}; ///< With the settings of asynchronous runs.
  bool oracle = false;
  std::int64_t tasks = 0;
  task_transition transition = task_transition::round; ///< How clients change task.
  double staying_share = 0.0;          ///< Share of clients that keep their old task when a new one begins.
  std::int64_t classes = 0;            ///< Number of classes of the run.
  std::array<std::int64_t, 3> shape{}; ///< C, H, W of the data.
  std::int64_t tokens = 0;             ///< Vocabulary size: rows hold tokens from 0 below this; 0: rows hold pixels.
  /// [C] A pixel v in 0 .. 255 enters nets as v * scale + shift; empty if rows are numbers, not pixels.
  std::vector<float> scale{}, shift{};
  std::vector<class_range> task_classes{}; ///< [tasks] labels of each task.
  std::int64_t public_rows = 0;            ///< Number of rows that no client has (partition.public_share).
  std::int64_t clients = 0;
  std::uint64_t seed = 0;
  /// Limit of the method's memory; the largest integer if unknown.
  memory_room memory{.bytes = std::numeric_limits<std::int64_t>::max()};
  std::map<std::string, tensor_map> files{};      ///< Contents of method_needs::tensor_files, by key.
  std::map<std::string, loaded_module> modules{}; ///< Contents of method_needs::module_files, by key.
  std::map<std::string, std::string> texts{};     ///< Contents of method_needs::text_files, by key.

  /// False if rows are numbers or tokens, of any shape: no method may mirror, crop or shift them.
  [[nodiscard]] bool has_images() const noexcept { return tokens == 0 && !scale.empty(); }
};

/// A named set of defaults for any section, as TOML. The user's keys override it.
struct preset {
  std::string name{};
  std::string meaning{};
  std::string toml{};
};

/// A method. Created once per run, then const: shared by all clients and threads.
class strategy {
public:
  virtual ~strategy() = default;
  /// Binds the method's keys of [strategy] to its options. Called first.
  virtual void keys(key_table&) {}
  [[nodiscard]] virtual std::vector<preset> presets() const { return {}; }
  /// Depends on the keys only.
  [[nodiscard]] virtual method_needs needs() const { return {}; }
  /// Builds the run's net from the model that the scenario names. A method with a net of its own overrides this.
  /// @param shape C, H, W of the inputs @param outputs rows of the head. Fails with a message without a place.
  [[nodiscard]] virtual tl::expected<model_ref, std::string>
  build_net(const model_kind& kind, const std::array<std::int64_t, 3>& shape, std::int64_t outputs) const {
    return kind.build(shape, outputs);
  }
  /// Validates the net, the method's keys, its files and the combination of sections. Each error has a message with the
  /// likely fix; its `where` is a key ("strategy.ridge", "model.name") or a file. Called before prepare(). Empty if
  /// valid.
  [[nodiscard]] virtual diagnostics check(const method_setup& /*setup*/) const { return {}; }
  /// A net that the method trains after the run's net, and saves with it under names of its own; null: none. Called
  /// after check() has returned no error.
  [[nodiscard]] virtual model_ref net_behind(const method_setup& /*setup*/) const { return nullptr; }
  /// Called once, after the keys were read and the model was built.
  virtual void prepare(const method_setup& setup) = 0;
  /// One round of one client: a pure function of `ctx` and `in`, both of which outlive it. It may be destroyed at any
  /// co_await and rerun from the start, so it must not change anything else. It may move to another thread at a
  /// co_await: do not hold a lock or a NoGradGuard across one.
  virtual task<client_result> client_round(client_context& ctx, const broadcast& in) const = 0;
  /// A client outside the cohort observes its rows (task_plan::observers). A pure function like client_round; its
  /// result has memory and counts, but no upload.
  virtual task<client_result> client_look(client_context& ctx, const broadcast& in) const;
  [[nodiscard]] virtual std::unique_ptr<server_half> make_server() const = 0;
  /// Null if the method has no proxy.
  [[nodiscard]] virtual std::unique_ptr<proxy_half> make_proxy() const { return nullptr; }
  /// Parameters of the net whose `flat_weights` are sent; int8 scales each parameter separately. By default those of
  /// the run's net. Called after prepare().
  [[nodiscard]] virtual const std::vector<parameter>& wire_layout(const model& net) const { return net.layout(); }
};

struct strategy_entry {
  std::string name{};
  std::string summary{}; ///< One line with the paper, for `mneme list strategies`.
  std::function<std::unique_ptr<strategy>()> make{};
};
/// `const strategy_registration line{{.name = "fedavg", .summary = "...", .make = ...}};`
struct strategy_registration {
  explicit strategy_registration(strategy_entry entry);
};
[[nodiscard]] std::vector<strategy_entry> strategies(); ///< Sorted by name.

} // namespace mneme
