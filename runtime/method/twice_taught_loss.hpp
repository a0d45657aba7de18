/// twice_taught_loss: an objective that is shown a second frozen net's features besides what the job's teacher shows.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

/// The name under which a job's `side` holds the weights [P] of the second teacher: a frozen net of the same kind.
inline constexpr const char* second_teacher_weights = "second_teacher";

class twice_taught_loss : public loss {
public:
  /// As the other call. @param second_features [K, B, D]: the second teacher's, of the same rows
  [[nodiscard]] virtual loss_output operator()(const loss_input& in, const at::Tensor& second_features) const = 0;
  /// Trainings make the other call.
  [[nodiscard]] loss_output operator()(const loss_input& /*in*/) const final {
    MNEME_CHECK(false, identity());
    return {};
  }
  [[nodiscard]] const twice_taught_loss* twice_taught() const final { return this; }
};

} // namespace mneme
