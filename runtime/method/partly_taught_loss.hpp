/// partly_taught_loss: an objective that distills only some of the rows.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

class partly_taught_loss : public loss {
public:
  /// Labels of the distilled rows, from 0 in the classes of the loss. The teacher's outputs for other rows may be
  /// undefined.
  [[nodiscard]] virtual class_range taught_labels() const = 0;
};

} // namespace mneme
