/// random_number: numbers of the operating system's generator, for names and secrets of processes.
#pragma once
#include <cstdint>
namespace mneme {

/// Must not enter a result. Throws std::system_error if the system has no random numbers.
[[nodiscard]] std::uint64_t random_number();

} // namespace mneme
