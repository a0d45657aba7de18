/// party_steps: requests of the federation to the parties, and their replies, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/method/server_half.hpp"
#include "runtime/results/metrics.hpp"
namespace mneme {

// a table of requests and replies
// clang-format off
// -- the server; it replies to open_task with a task_plan
struct open_task {
  round_info where{};
};
struct open_round {
  round_info where{};
};
struct opened_round {
  broadcast_ref in{};
  std::int64_t bytes = 0, initial_payload_bytes = 0;
};

// -- every party
struct deliveries {
  party_id to{};
  std::vector<delivery> uploads{}; // in delivery order
  bool ack_when_folded = false;
};
/// Requests a party's step at the end of a round. The server steps first; the other parties get its new `model`.
struct take_step {
  party_id to{};
  round_info where{};
  tensors_ref model{};
};
struct step_taken {
  digest128 digest{}; ///< Digest of the model or advice.
  /// Server: the model, if there are other parties. Another party: its advice, as clients receive it.
  tensors_ref advice{};
  tensors_ref kept{}; ///< Server, in the dumped round: all trained tensors by name.
  std::int64_t advice_bytes = 0, model_bytes = 0; ///< Bytes of the advice, and of the model that the party received.
};
struct save_state {
  party_id to{};
  archive so_far{};
}; // the party appends its state
struct saved_state {
  archive state{};
};
struct restore_state {
  party_id to{};
  archive sections{};
}; // the party restores its part of the state
struct restored_state {
  archive sections{};
};

// -- the server
struct evaluate {
  std::vector<class_range> masks{}; // for each task from 0 to the last opened one: classes that predictions may choose
                                    // from
  bool end_of_task = false;         // true: also count predictions by class
  bool with_model = false;          // true: also return the model
  round_info where{};               // the last closed round
};
struct evaluated {
  std::vector<evaluate_output> per_task{};
  std::vector<class_tally> per_class{};
  tensors_ref model{}; // parameters by name, if with_model
  std::optional<std::vector<client_test>> clients{}; // one entry per client; set only with evaluation.personal
};
// clang-format on

} // namespace mneme
