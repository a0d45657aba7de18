#include "runtime/base/virtual_clock.hpp"
#include <cmath>
namespace mneme {

virtual_duration rounded_up(double seconds) {
  MNEME_CHECK(seconds >= 0.0 && seconds < 9e9, seconds);
  return virtual_duration{static_cast<virtual_clock::rep>(std::ceil(seconds * 1e9))};
}

} // namespace mneme
