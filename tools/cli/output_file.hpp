/// output_file: writes a file that the user names.
#pragma once
#include <filesystem>
#include <string_view>
namespace mneme {

/// Replaces a regular file, or the target of a link to one, atomically; the link stays. Writes into a pipe or character
/// device, such as /dev/stdout. Throws std::system_error with the file's name, also for folders, sockets, block devices
/// and dangling links.
void write_output(const std::filesystem::path& file, std::string_view content);

} // namespace mneme
