/// finite_step: a party's step whose result is NaN or infinite fails by name, before a client receives the result.
#pragma once
#include "actors/parties/party_host.hpp"
namespace mneme {

/// Throws std::runtime_error with the method, the tensor and the keys that may be the cause if a value is not finite.
/// @param subject names the tensors in the error: "the new model"
void expect_finite(const run_context& run, const char* subject, const tensors_ref& tensors);
void expect_finite(const run_context& run, const char* subject, const predictor& learnt);

} // namespace mneme
