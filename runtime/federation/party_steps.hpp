/// What the federation asks of the parties, and what they answer, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/federation/parties.hpp"
#include "runtime/method/server_half.hpp"
#include "runtime/results/metrics.hpp"
namespace mneme {

// clang-format off: a table of questions and answers
// -- the server; the answer to open_task is a task_plan
struct open_task {
  round_place where{};
};
struct open_round {
  round_place where{};
};
struct opened_round {
  broadcast_ref in{};
  std::int64_t bytes = 0, first_contact_bytes = 0;
};

// -- every party
struct deliveries {
  party_id to{};
  std::vector<delivery> uploads{}; // in virtual order
  bool tell_when_folded = false;
};
/// Its step at the end of a round, the server first. `model`: that after the server's step, for the others.
struct take_step {
  party_id to{};
  round_place where{};
  tensors_ref model{};
};
struct step_taken {
  digest128 digest{}; ///< What it says.
  /// The server: its model, where there are other parties. Another party: its advice, as it arrives at clients.
  tensors_ref says{};
  tensors_ref kept{}; ///< The server, after the round whose values are kept: all that is learnt, by name.
  std::int64_t says_bytes = 0, heard_bytes = 0; ///< Bytes of its advice, and of the model that it was sent.
};
struct save_state {
  party_id to{};
  archive so_far{};
}; // it appends what it would go on with
struct saved_state {
  archive state{};
};
struct restore_state {
  party_id to{};
  archive sections{};
}; // it goes on with its part of that
struct restored_state {
  archive sections{};
};

// -- the server
struct evaluate {
  std::vector<class_range> masks{}; // of tasks 0 .. the last opened: the classes that answers are among
  bool end_of_task = false;         // classes are counted one by one
  bool with_model = false;          // the model is wanted, too
};
struct evaluated {
  std::vector<evaluate_output> per_task{};
  std::vector<class_tally> per_class{};
  tensors_ref model{}; // parameters by name, if wanted
};
// clang-format on

} // namespace mneme
