/// finite_step: rejects NaN and infinite values in a party's step before a client receives the result.
#pragma once
#include "actors/parties/party_host.hpp"
namespace mneme {

/// Throws std::runtime_error if a value is not finite. The error names the method, the tensor and the keys that may be
/// the cause. @param subject names the tensors in the error, such as "the new model"
void expect_finite(const run_context& run, const char* subject, const tensors_ref& tensors);
void expect_finite(const run_context& run, const char* subject, const predictor& learned);

} // namespace mneme
