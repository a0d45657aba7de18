#include "tools/cli/output_file.hpp"
#include "runtime/base/atomic_file.hpp"
#include <csignal>
#include <fcntl.h>
#include <system_error>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// A reader that goes away is an error of the write, not the end of the program.
void write_into(const fs::path& file, std::string_view content) {
  std::signal(SIGPIPE, SIG_IGN);
  open_file out(file, O_WRONLY | O_NOCTTY);
  out.write(content);
  out.close();
}

} // namespace

void write_output(const fs::path& file, std::string_view content) {
  std::error_code error;
  switch (fs::status(file, error).type()) {
  case fs::file_type::fifo:
  case fs::file_type::character:
    return write_into(file, content);
  case fs::file_type::regular:
    return write_atomically(fs::canonical(file), content);
  default:
    return write_atomically(file, content); // makes it, or says what is there
  }
}

} // namespace mneme
