/// round: where a round stands, and what travels in it: broadcasts, assignments, results, deliveries.
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
  /// Filled by the engine; where clients change task one by one, with the task the client is in. Where clients are
  /// blind (method_needs) it says as little as a client can know: `round` and `opened`.
  round_place place{};
  tensors_ref weights{};
  tensors_ref extra{}; ///< Whatever else the method sends every round; may be null.
  /// Each client receives this with its first dispatch only (a frozen encoder); may be null.
  tensors_ref first_contact{};
  /// What the proxy has said last, over links of its own; null before that, and without one. Filled by the engine.
  tensors_ref advice{};
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
  task_id task{};          ///< Whose rows the client holds now; for the engine.
  bool looks = false;      ///< It observes (strategy::client_look) instead of taking part.
};

/// Numbers by name. Most rounds have none, and pay for no map then: results move often.
class client_counts {
public:
  using by_name = std::map<std::string, double>;
  client_counts() = default;
  client_counts(by_name counts) // implicit: methods count in maps
      : by_name_(counts.empty() ? nullptr : std::make_shared<by_name>(std::move(counts))) {}
  client_counts(std::initializer_list<by_name::value_type> counts) : client_counts(by_name(counts)) {}
  /// 0 where the name is a new one.
  double& operator[](const std::string& name) {
    by_name_ = by_name_ ? std::make_shared<by_name>(*by_name_) : std::make_shared<by_name>(); // copies may share it
    return (*by_name_)[name];
  }
  /// Throws std::out_of_range.
  [[nodiscard]] double at(const std::string& name) const { return (by_name_ ? *by_name_ : by_name{}).at(name); }
  bool operator==(const client_counts& other) const {
    return by_name_ && other.by_name_ ? *by_name_ == *other.by_name_ : !by_name_ && !other.by_name_;
  }
  /// Null: there are none.
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

/// What a round ends with.
struct client_result {
  tensors_ref upload{};  ///< Travels to the server.
  memory_ref memory{};   ///< Replaces the client's memory on delivery; null: memory stays.
  std::int64_t rows = 0; ///< Weight of the upload in an average: the client's rows, whatever the epochs.
  tensors_ref to_proxy{}; ///< Travels to the method's proxy, over a link of its own; may be null.
  /// Added up over the run, from delivery on, for summary.json.
  client_counts counts{};
  /// What the round's training jobs say of their loss, for metrics.jsonl. Filled by the engine; null: nothing was
  /// trained.
  std::shared_ptr<const training_losses> losses{};
};

/// One upload that has reached the server, or the proxy.
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

} // namespace mneme
