/// random_number: random numbers of the operating system, for names and secrets of processes.
#pragma once
#include <cstdint>
namespace mneme {

/// No result of a run may depend on these numbers. Throws std::system_error if the system has no random numbers.
[[nodiscard]] std::uint64_t random_number();

} // namespace mneme
