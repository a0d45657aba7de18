/// round: position of a round in the run, and its messages (broadcast, assignment, result, delivery).
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/class_range.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/method/training_losses.hpp"
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
namespace mneme {

/// Position of a round in the run.
struct round_info {
  round_id round{};
  task_id task{};
  std::int64_t round_of_task = 0; ///< Index of the round within its task, from 0.
  std::int64_t rounds_of_task = 1;
  class_range seen_classes{};    ///< Classes of the tasks opened so far.
  class_range current_classes{}; ///< Classes of this task. Only `finetune` and methods with oracle = true may use them.
};

/// The server's message to every client of a round. Immutable and shared.
struct broadcast {
  /// Set by the engine. If clients change task one by one, it contains the client's own task. If the method hides the
  /// task (method_needs), only `round` and `seen_classes` are set.
  round_info info{};
  tensors_ref weights{};
  tensors_ref extra{}; ///< Additional tensors of the method, sent every round; may be null.
  /// Tensors that each client receives once, at its first dispatch, such as a frozen encoder; may be null.
  tensors_ref initial_payload{};
  /// Latest advice of the proxy, sent over its own links and set by the engine. Null before the first advice.
  tensors_ref advice{};
};
using broadcast_ref = std::shared_ptr<const broadcast>;

/// All inputs of a client's round. Equal assignments give equal results.
struct assignment {
  assignment_id id{};
  client_id client{};
  broadcast_ref in{};
  memory_ref memory{};
  sample_view samples{};
  std::uint64_t seed = 0;
  std::uint32_t visit = 0; ///< Number of earlier assignments of this client.
  task_id task{};          ///< Task of the client's rows; used by the engine only.
  bool observes = false;   ///< True: the client observes (strategy::client_observe) and sends no upload.
};

/// Numbers by name. An empty object holds no map, so that moving results stays cheap.
class client_counts {
public:
  using by_name = std::map<std::string, double>;
  client_counts() = default;
  client_counts(by_name counts) // implicit, because methods count in maps
      : by_name_(counts.empty() ? nullptr : std::make_shared<by_name>(std::move(counts))) {}
  client_counts(std::initializer_list<by_name::value_type> counts) : client_counts(by_name(counts)) {}
  /// Reference to the value of `name`, which is added as 0 if missing.
  double& operator[](const std::string& name) {
    by_name_ = by_name_ ? std::make_shared<by_name>(*by_name_) : std::make_shared<by_name>(); // copies share the map
    return (*by_name_)[name];
  }
  /// Value of `name`. Throws std::out_of_range if there is none.
  [[nodiscard]] double at(const std::string& name) const { return (by_name_ ? *by_name_ : by_name{}).at(name); }
  bool operator==(const client_counts& other) const {
    return by_name_ && other.by_name_ ? *by_name_ == *other.by_name_ : !by_name_ && !other.by_name_;
  }
  /// The map. Returns null if there are no numbers.
  [[nodiscard]] const by_name* get() const noexcept { return by_name_.get(); }
  void persist(archive& state) {
    auto counts = by_name_ ? *by_name_ : by_name{};
    state(counts);
    if (state.loading())
      *this = std::move(counts);
  }

private:
  std::shared_ptr<by_name> by_name_; // null: empty
};

/// Result of a client's round.
struct client_result {
  tensors_ref upload{};   ///< Tensors sent to the server.
  memory_ref memory{};    ///< The client's new memory, committed on delivery; null: unchanged.
  std::int64_t rows = 0;  ///< Weight of the upload in averages: number of client rows, counted once for all epochs.
  tensors_ref to_proxy{}; ///< Tensors sent to the proxy over its own link; may be null.
  /// Counts that are summed over all delivered results, for summary.json.
  client_counts counts{};
  /// Training losses of the round's jobs, for metrics.jsonl. Set by the engine; null if nothing was trained.
  std::shared_ptr<const training_losses> losses{};
};

/// An upload that has arrived at the server or the proxy.
struct delivery {
  assignment_id assignment{};
  client_id from{};
  round_id started_from{}; ///< Round of its broadcast; earlier than the open round if the upload was late and kept.
  tensors_ref upload{};
  std::int64_t rows = 0;
  // Asynchronous runs only (rounds.mode = "async"):
  tensors_ref start{};           ///< Shared weights of its broadcast; null in synchronous rounds.
  std::int64_t staleness = 0;    ///< Number of server steps since that broadcast.
  double staleness_weight = 1.0; ///< Weight s_k of the scenario's staleness rule.
};

} // namespace mneme
