/// What the federation asks of the server, and what the server answers, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/method/server_half.hpp"
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
struct evaluate { task_id upto{}; class_range mask{}; };
struct evaluated { std::vector<evaluate_output> per_task{}; };
struct save_state { archive so_far{}; };                       // the server appends what it would go on with
struct saved_state {
  archive state{};
};
struct restore_state { archive rest{}; };                      // it goes on with that
// clang-format on

} // namespace mneme
