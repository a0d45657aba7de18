#include "actors/protocol/messages.hpp"
#include <array>
namespace mneme {
namespace {

constexpr std::array<const char*, 6> names{"none",       "round_failed", "server_failed", "recorder_failed",
                                           "actor_lost", "interrupted"};

} // namespace

std::string to_string(run_errc code) { return names.at(static_cast<std::size_t>(code)); }

bool from_string(caf::string_view text, run_errc& code) {
  for (std::uint8_t i = 1; i < names.size(); ++i)
    if (std::string(text.begin(), text.end()) == names[i])
      return from_integer(i, code);
  return false;
}

bool from_integer(std::underlying_type_t<run_errc> value, run_errc& code) {
  if (value == 0 || value >= names.size())
    return false;
  code = static_cast<run_errc>(value);
  return true;
}

std::string error_message(const caf::error& reason) {
  const auto& context = reason.context();
  return context.match_elements<std::string>() ? context.get_as<std::string>(0) : caf::to_string(reason);
}

} // namespace mneme
