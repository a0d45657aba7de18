#include "runtime/base/random_number.hpp"
#include <cerrno>
#include <sys/random.h>
#include <system_error>
namespace mneme {

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    throw std::system_error(errno, std::generic_category(), "the system provides no random numbers (getrandom)");
  return number;
}

} // namespace mneme
