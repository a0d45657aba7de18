/// strategy: a method. Its client half is a coroutine, its server half a fold and a step. No CAF here.
#pragma once
#include "runtime/base/available_memory.hpp"
#include "runtime/method/client_context.hpp"
#include "runtime/method/method_needs.hpp"
#include "runtime/method/proxy_half.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
#include <limits>
namespace mneme {

/// A module from outside, as a net without a head, and the weights that its file has.
struct loaded_module {
  model_ref net{};
  tensors_ref weights{};               ///< `flat_weights` [P]
  std::array<std::int64_t, 3> input{}; ///< Channels, height and width of its rows.
};

/// The settings that a method receives before the run.
struct method_setup {
  model_ref net{};
  tensors_ref initial{};        ///< Initial weights: seed, seed_weights or pretrained. Null in strategy::check().
  tensors_ref initial_behind{}; ///< Those of strategy::net_behind(), where seed_weights has them; null: they are drawn.
  training_section training{};
  trainable_part trainable = trainable_part::all;
  upload_weighting weighting = upload_weighting::samples;
  double keep_share = 0.0; ///< Share of the old model in what an averaging server steps to.
  rounds_section rounds{}; ///< Says, too, how the server steps where it does so as uploads come.
  bool oracle = false;
  std::int64_t tasks = 0;
  task_transition transition = task_transition::round; ///< How clients change task.
  double staying_share = 0.0;                          ///< Clients that keep their old task when one begins.
  std::int64_t classes = 0;                            ///< Those of the run.
  std::array<std::int64_t, 3> shape{};                 ///< C, H, W of the data.
  std::int64_t tokens = 0;                             ///< Rows hold tokens from 0 below this; 0: they hold pixels.
  /// [C] nets see a pixel v of 0 .. 255 as v * scale + shift; none: rows are numbers, and no pixels.
  std::vector<float> scale{}, shift{};
  std::vector<class_range> task_classes{}; ///< [tasks] labels that occur in each.
  std::int64_t public_rows = 0;            ///< Rows of the run that no client holds (partition.public_share).
  std::int64_t clients = 0;
  std::uint64_t seed = 0;
  /// What all that the method keeps has to fit into; more than there can be, where nobody says.
  memory_room memory{.bytes = std::numeric_limits<std::int64_t>::max()};
  std::map<std::string, tensor_map> files{};      ///< What method_needs::tensor_files asked for, by key.
  std::map<std::string, loaded_module> modules{}; ///< What method_needs::module_files asked for, by key.
  std::map<std::string, std::string> texts{};     ///< What method_needs::text_files asked for, by key.
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
  /// Follows from the keys alone.
  [[nodiscard]] virtual method_needs needs() const { return {}; }
  /// What is wrong with the net, the method's keys, its files and the sections taken together, each in words with the
  /// likely fix; `where` of a diagnostic is a key ("strategy.ridge", "model.name") or a file. Called before prepare();
  /// empty: nothing is wrong.
  [[nodiscard]] virtual diagnostics check(const method_setup& /*setup*/) const { return {}; }
  /// What the method learns behind the run's net, and saves beside it under names of its own; null: nothing. Called
  /// after check() has found nothing wrong.
  [[nodiscard]] virtual model_ref net_behind(const method_setup& /*setup*/) const { return nullptr; }
  /// Called once, after the keys were read and the model built.
  virtual void prepare(const method_setup& setup) = 0;
  /// One round of one client, as a pure function of `ctx` and `in`; both outlive it. It may be
  /// dropped at any co_await, and run again from the start after a crash, so it must not touch
  /// anything else. Between two awaits it may change threads: no lock and no NoGradGuard across one.
  virtual task<client_result> client_round(client_context& ctx, const broadcast& in) const = 0;
  /// A client outside the cohort looks at its rows (task_plan::observers): a pure function like client_round, whose
  /// result holds a memory and counts, and no upload.
  virtual task<client_result> client_look(client_context& ctx, const broadcast& in) const;
  [[nodiscard]] virtual std::unique_ptr<server_half> make_server() const = 0;
  /// Null where the method has no proxy, which then costs nothing.
  [[nodiscard]] virtual std::unique_ptr<proxy_half> make_proxy() const { return nullptr; }
  /// Parameters of the net whose `flat_weights` travel, of which int8 scales each by itself: those of the run's net,
  /// unless the method learns another one. Asked after prepare().
  [[nodiscard]] virtual const std::vector<parameter>& wire_layout(const model& net) const { return net.layout(); }
};

struct strategy_entry {
  std::string name{};
  std::string summary{}; ///< One line with its paper, for `mneme list strategies`.
  std::function<std::unique_ptr<strategy>()> make{};
};
/// `const strategy_registration line{{.name = "fedavg", .summary = "...", .make = ...}};`
struct strategy_registration {
  explicit strategy_registration(strategy_entry entry);
};
[[nodiscard]] std::vector<strategy_entry> strategies(); ///< Sorted by name.

} // namespace mneme
