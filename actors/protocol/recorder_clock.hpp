/// recorder_clock: wall-clock time for records and polling. No result may depend on it.
#pragma once
#include <chrono>
namespace mneme {

class recorder_stopwatch {
public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

} // namespace mneme
