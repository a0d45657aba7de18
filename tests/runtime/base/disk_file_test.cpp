#include "runtime/base/disk_file.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Creates a named socket.
void make_socket(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(number, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(number);
}

} // namespace

TEST_CASE("a folder, a pipe, a socket and a device are refused by name without blocking") {
  const scratch_folder here;
  const auto pipe = here.path() / "pipe", socket = here.path() / "socket", link = here.path() / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0); // without a writer, opening it for reading would block
  make_socket(socket);
  std::filesystem::create_symlink(pipe, link);
  const std::pair<std::filesystem::path, std::string> kinds[] = {{here.path(), "a folder"},
                                                                 {pipe, "a named pipe"},
                                                                 {link, "a named pipe"},
                                                                 {socket, "a socket"},
                                                                 {"/dev/zero", "a device"}};
  for (const auto& [path, kind] : kinds) {
    CAPTURE(path);
    const auto expected_text = "is " + kind + "; expected an ordinary file";
    CHECK(special_kind(path) == kind);
    CHECK(unreadable_text(path) == expected_text);
    CHECK(open_stream(path).error() == expected_text);
    CHECK(diagnostic_text(disk_file::open(path).error().front()) == path.string() + ": error: " + expected_text);
    CHECK(text_of_file(path, 100).error().front().text == expected_text);
  }
}

TEST_CASE("ordinary files and links to them are read up to a size limit") {
  const scratch_folder here;
  const auto file = here.path() / "file", link = here.path() / "link", empty = here.path() / "empty";
  write_file(file, "text");
  write_file(empty, "");
  std::filesystem::create_symlink(file, link);
  CHECK(text_of_file(link, 4).value() == "text");
  CHECK(unreadable_text(file).empty());
  CHECK(unreadable_text(empty).empty());
  CHECK(unreadable_text(file, 3) == "has 4 bytes; expected at most 3");
  CHECK(text_of_file(file, 3).error().front().text == "has 4 bytes; expected at most 3");
  CHECK(unreadable_text(here.path() / "absent") == "cannot be read: No such file or directory");
  std::string line;
  auto stream = open_stream(link);
  REQUIRE(stream);
  std::getline(*stream, line);
  CHECK(line == "text");
}
