/// strategy: a method. Its client half is a coroutine; its server half folds uploads and updates the model.
#pragma once
#include "runtime/base/available_memory.hpp"
#include "runtime/method/client_context.hpp"
#include "runtime/method/method_needs.hpp"
#include "runtime/method/proxy_half.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
#include <limits>
namespace mneme {

/// A module file as a net without a head, with its weights.
struct loaded_module {
  model_ref net{};
  tensors_ref weights{};               ///< `flat_weights` [P]
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of its rows.
};

/// Settings that a method receives before the run starts.
struct method_setup {
  model_ref net{};
  tensors_ref initial{};            ///< Initial weights: random, seed_weights or pretrained. Null in strategy::check().
  tensors_ref initial_downstream{}; ///< Initial weights of strategy::downstream_net() from seed_weights; null: random.
  training_section training{};
  trainable_part trainable = trainable_part::all;
  upload_weighting weighting = upload_weighting::samples;
  double old_model_share = 0.0; ///< Share of the old model in the new one if the server averages uploads.
  rounds_section rounds{};      ///< Includes the settings of asynchronous runs.
  bool oracle = false;
  std::int64_t tasks = 0;
  task_transition transition = task_transition::round; ///< When clients change task.
  double keep_task_share = 0.0;        ///< Share of clients that keep their old task when a new one opens.
  std::int64_t classes = 0;            ///< Number of classes of the run.
  std::array<std::int64_t, 3> shape{}; ///< C, H, W of the data.
  std::int64_t tokens = 0;             ///< Exclusive upper bound of token ids; 0: rows are not tokens.
  /// [C] Nets receive a pixel v in [0, 255] as v * scale + shift. Empty if rows are numbers instead of pixels.
  std::vector<float> scale{}, shift{};
  std::vector<class_range> task_classes{}; ///< [tasks] classes of each task.
  std::int64_t public_rows = 0;            ///< Number of rows that no client has (partition.public_share).
  std::int64_t clients = 0;
  std::uint64_t seed = 0;
  /// Memory limit of the method in bytes; the largest integer if unknown.
  memory_budget memory{.bytes = std::numeric_limits<std::int64_t>::max()};
  std::map<std::string, tensor_map> files{};      ///< Contents of method_needs::tensor_files, by key.
  std::map<std::string, loaded_module> modules{}; ///< Contents of method_needs::module_files, by key.
  std::map<std::string, std::string> texts{};     ///< Contents of method_needs::text_files, by key.

  /// False if rows are numbers or tokens of any shape, which must not be mirrored, cropped or shifted.
  [[nodiscard]] bool has_images() const noexcept { return tokens == 0 && !scale.empty(); }
};

/// A named set of defaults for any section, as TOML. Keys of the scenario override it.
struct preset {
  std::string name{};
  std::string meaning{};
  std::string toml{};
};

/// The server's use of uploads. It determines which keys of [uploads], [aggregation] and clients.attack a run may use.
enum class upload_content : std::uint8_t {
  weights,          ///< The server only averages the weights that it has sent.
  weights_and_more, ///< The server averages weights, and also uses other tensors or the sender of an upload.
  other,            ///< The server does not average the weights that it has sent.
};

/// A method. Created once per run, then const and shared by all clients and threads.
class strategy {
public:
  virtual ~strategy() = default;
  /// Binds the method's keys of [strategy] to its options. Called first.
  virtual void keys(key_table&) {}
  [[nodiscard]] virtual std::vector<preset> presets() const { return {}; }
  /// Requirements on the engine. They may depend on the keys only.
  [[nodiscard]] virtual method_needs needs() const { return {}; }
  /// Content of the uploads. It may depend on the keys only.
  [[nodiscard]] virtual upload_content uploads() const { return upload_content::other; }
  /// Builds the run's net from the scenario's model. Methods with their own net override this. Returns an error message
  /// without a location on failure. @param shape C, H, W of the inputs @param outputs number of head outputs
  [[nodiscard]] virtual tl::expected<model_ref, std::string>
  build_net(const model_kind& kind, const std::array<std::int64_t, 3>& shape, std::int64_t outputs) const {
    return kind.build(shape, outputs);
  }
  /// Validates the net, the method's keys and files, and combinations of sections. Each error states the likely fix;
  /// its `where` is a key ("strategy.ridge", "model.name") or a file. Empty if valid. Called before prepare().
  [[nodiscard]] virtual diagnostics check(const method_setup& /*setup*/) const { return {}; }
  /// A net that the method trains on the features of the run's net. It is saved in the same file, under separate names.
  /// Null if there is none. Called after check() has returned no error.
  [[nodiscard]] virtual model_ref downstream_net(const method_setup& /*setup*/) const { return nullptr; }
  /// Called once, after the keys were read and the net was built.
  virtual void prepare(const method_setup& setup) = 0;
  /// One round of one client: a pure function of `ctx` and `in`, which both outlive the coroutine. The coroutine may be
  /// destroyed at any co_await and rerun from the start, so it must have no side effects. It may continue on another
  /// thread after a co_await: hold no lock and no NoGradGuard across one.
  virtual task<client_result> client_round(client_context& ctx, const broadcast& in) const = 0;
  /// A client outside the cohort observes its rows (task_plan::observers). A pure function like client_round(). The
  /// result may have memory and counts, but no upload.
  virtual task<client_result> client_observe(client_context& ctx, const broadcast& in) const;
  /// True if every upload holds the client's trained model: `flat_weights` of the run's net, or the sent parameters
  /// under their names. evaluation.personal = "local" requires it.
  [[nodiscard]] virtual bool uploads_models() const { return false; }
  /// Creates the server half. Called after prepare().
  [[nodiscard]] virtual std::unique_ptr<server_half> make_server() const = 0;
  /// Creates the proxy. Returns null if the method has none.
  [[nodiscard]] virtual std::unique_ptr<proxy_half> make_proxy() const { return nullptr; }
  /// Parameters of the net whose weights `flat_weights` in messages contains; int8 scales each parameter separately.
  /// The default is the run's net. Called after prepare().
  [[nodiscard]] virtual const std::vector<parameter>& wire_layout(const model& net) const { return net.layout(); }
};

struct strategy_entry {
  std::string name{};
  std::string summary{}; ///< One line that names the paper, for `mneme list strategies`.
  std::function<std::unique_ptr<strategy>()> make{};
};
/// Registers a method: `const strategy_registration line{{.name = "fedavg", .summary = "...", .make = ...}};`
struct strategy_registration {
  explicit strategy_registration(strategy_entry entry);
};
[[nodiscard]] std::vector<strategy_entry> strategies(); ///< Sorted by name.

} // namespace mneme
