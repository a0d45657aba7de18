/// output_file: what a command writes where its user says.
#pragma once
#include <filesystem>
#include <string_view>
namespace mneme {

/// An ordinary file is replaced whole or not at all, and so is the one to which a link leads: the link stays. A pipe or
/// a device, as /dev/stdout may be one, gets the content. Throws std::system_error naming the file, also for folders,
/// sockets, block devices and links that lead nowhere.
void write_output(const std::filesystem::path& file, std::string_view content);

} // namespace mneme
