/// failure_text: what a failed computation says to people.
#pragma once
#include <string>
namespace mneme {

/// The exception at hand in words, without addresses. @pre called within a catch clause
[[nodiscard]] std::string failure_text();

} // namespace mneme
