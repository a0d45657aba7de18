/// partly_taught_loss: an objective that compares some rows with the teacher, and others not.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

class partly_taught_loss : public loss {
public:
  /// Labels of the rows that are compared, from 0 within the classes of the loss: what the teacher is said to show of
  /// others need not be so.
  [[nodiscard]] virtual class_range taught_labels() const = 0;
};

} // namespace mneme
