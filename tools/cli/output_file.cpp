#include "tools/cli/output_file.hpp"
#include "runtime/base/atomic_file.hpp"
#include <csignal>
#include <fcntl.h>
#include <system_error>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// Writes into a file that is not replaced. Reports a closed pipe as an error instead of ending the program.
void write_into(const fs::path& file, std::string_view content) {
  std::signal(SIGPIPE, SIG_IGN);
  open_file out(file, O_WRONLY | O_NOCTTY);
  out.write(content);
  out.close();
}

/// Fails if the file's folder is missing. The folder is not created, because its name may be misspelled.
void expect_folder_of(const fs::path& file) {
  std::error_code error;
  if (const auto folder = file.parent_path(); !folder.empty() && !fs::is_directory(folder, error))
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            "cannot write '" + file.string() + "', whose folder '" + folder.string() +
                                "' does not exist");
}

} // namespace

void write_output(const fs::path& file, std::string_view content) {
  std::error_code error;
  expect_folder_of(file);
  switch (fs::status(file, error).type()) {
  case fs::file_type::fifo:
  case fs::file_type::character:
    return write_into(file, content);
  case fs::file_type::regular:
    return write_atomically(fs::canonical(file), content);
  default:
    return write_atomically(file, content); // creates the file, or reports why it cannot
  }
}

} // namespace mneme
