/// recorder_clock: wall time, read for the record and for how long a thread stays awake, never for a result.
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
