#include "runtime/population/staleness.hpp"
#include "runtime/base/check.hpp"
#include <cmath>
namespace mneme {

double staleness_weight(const rounds_section& rule, std::int64_t steps) {
  MNEME_CHECK(steps >= 0, steps);
  const double a = rule.staleness_exponent;
  switch (rule.staleness) {
  case staleness_kind::polynomial:
    return steps == 0 ? 1.0 : std::pow(1.0 + static_cast<double>(steps), -a);
  case staleness_kind::constant:
    return 1.0;
  case staleness_kind::hinge:
    return steps <= rule.staleness_bound ? 1.0 : 1.0 / (a * static_cast<double>(steps - rule.staleness_bound) + 1.0);
  }
  return 1.0;
}

} // namespace mneme
