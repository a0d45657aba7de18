/// What the federation asks of the server, and what the server answers, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/method/server_half.hpp"
#include "runtime/results/metrics.hpp"
namespace mneme {

// clang-format off: a table of questions and answers; the answer to open_task is a task_plan
struct open_task { round_place where{}; };
struct open_round { round_place where{}; };
struct opened_round {
  broadcast_ref in{};
  std::int64_t bytes = 0, first_contact_bytes = 0;
};
struct deliveries {
  std::vector<delivery> uploads{};
  bool tell_when_folded = false;
}; // in virtual order
struct close_round { round_place where{}; };
struct closed_round { digest128 model{}; tensors_ref for_proxy{}; }; // the model, where there is a proxy
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
struct save_state { archive so_far{}; };                       // the server appends what it would go on with
struct saved_state {
  archive state{};
};
struct restore_state { archive rest{}; };                      // it goes on with that
// clang-format on

} // namespace mneme
