/// What the federation asks of the proxy of a method that has one, and what the proxy answers.
#pragma once
#include "runtime/federation/server_steps.hpp"
namespace mneme {

// clang-format off: a table of questions and answers
struct receive { std::vector<delivery> sent{}; };              // in virtual order; not answered
struct advise { round_place where{}; tensors_ref model{}; };   // the model after a server step
struct advised {
  tensors_ref advice{}; ///< As it arrives at clients.
  std::int64_t advice_bytes = 0, model_bytes = 0;
  digest128 digest{}; ///< What the advice holds.
};
struct save_proxy { archive so_far{}; };                       // the proxy appends what it would go on with
struct saved_proxy {
  archive state{};
};
struct restore_proxy { archive rest{}; };                      // it goes on with its part of that
struct restored_proxy {
  archive rest{};
};
// clang-format on

} // namespace mneme
