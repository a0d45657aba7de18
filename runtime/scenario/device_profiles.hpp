/// device_profiles: profiles of devices as files, and those that this program knows by name.
#pragma once
#include "runtime/scenario/layers.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

struct named_profile {
  std::string name{}, text{};
};
/// scenarios/devices/*.toml by name, as this program was built with them.
[[nodiscard]] const std::vector<named_profile>& device_catalogue();

/// Its figures; what is wrong goes to `problems`. @param source for messages: a file's path, "profile 'lte'"
[[nodiscard]] device_profile profile_of_text(const std::string& source, const std::string& text,
                                             std::vector<problem>& problems);

/// The text of a profile that profile_of_text() reads back to it.
[[nodiscard]] std::string profile_text(device_profile profile);

/// What devices.profiles chooses, in its order. @param at where the key was said
[[nodiscard]] std::vector<std::shared_ptr<const device_profile>>
chosen_profiles(const std::vector<profile_choice>& choices, const place& at, std::vector<problem>& problems);

/// The same choices with the profiles themselves in place of their files and names: what another process is given.
[[nodiscard]] std::vector<profile_choice> with_texts(std::vector<profile_choice> choices);

} // namespace mneme
