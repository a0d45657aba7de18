/// device_profiles: device profiles from files, and the built-in ones by name.
#pragma once
#include "runtime/scenario/layers.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

struct named_profile {
  std::string name{}, text{};
};
/// The built-in profiles by name: scenarios/devices/*.toml at build time.
[[nodiscard]] const std::vector<named_profile>& device_catalogue();

/// Parses a profile and adds its errors to `problems`. @param source for messages: a file's path, or "profile 'lte'"
[[nodiscard]] device_profile profile_of_text(const std::string& source, const std::string& text,
                                             std::vector<problem>& problems);

/// Writes a profile as text; profile_of_text() restores it.
[[nodiscard]] std::string profile_text(device_profile profile);

/// The profiles that devices.profiles selects, in its order. @param at place of the key, for messages
[[nodiscard]] std::vector<std::shared_ptr<const device_profile>>
chosen_profiles(const std::vector<profile_choice>& choices, const place& at, std::vector<problem>& problems);

/// The same choices with the text of each profile instead of its file or name, for another process.
[[nodiscard]] std::vector<profile_choice> with_texts(std::vector<profile_choice> choices);

} // namespace mneme
