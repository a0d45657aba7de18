/// device_profiles: finds and parses device profiles, from files or built in.
#pragma once
#include "runtime/scenario/layers.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

struct named_profile {
  std::string name{}, text{};
};
/// All built-in profiles by name: the content of scenarios/devices/*.toml at build time.
[[nodiscard]] const std::vector<named_profile>& device_catalogue();

/// Parses a profile and adds its errors to `problems`. @param source for messages: file path or "profile 'lte'"
[[nodiscard]] device_profile profile_of_text(const std::string& source, const std::string& text,
                                             std::vector<scenario_error>& problems);

/// Formats a profile as text, from which profile_of_text() restores it.
[[nodiscard]] std::string profile_text(device_profile profile);

/// The profiles that devices.profiles selects, in the same order. @param at location of the key, for messages
[[nodiscard]] std::vector<std::shared_ptr<const device_profile>>
choose_profiles(const std::vector<profile_choice>& choices, const place& at, std::vector<scenario_error>& problems);

/// Replaces file and name of each profile with its text, for use in another process.
[[nodiscard]] std::vector<profile_choice> with_texts(std::vector<profile_choice> choices);

} // namespace mneme
