#include "runtime/base/atomic_file.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

/// Error of the next calls of ftruncate() in this program; 0: they succeed.
static int truncation_error = 0;
extern "C" int ftruncate(int descriptor, off_t length) noexcept {
  errno = truncation_error;
  return truncation_error != 0 ? -1 : static_cast<int>(::syscall(SYS_ftruncate, descriptor, length));
}

namespace {

/// Limits files of this process to `bytes` bytes during its lifetime; write() then fails as on a full disk.
class limited_files {
public:
  explicit limited_files(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~limited_files() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

private:
  void (*signal_)(int);
  rlimit before_{};
};

/// Error of `act` while files are limited; "" if there is none.
template <class Act>
std::string complaint(rlim_t bytes, Act act) {
  const limited_files full(bytes);
  try {
    act();
    return "";
  } catch (const std::system_error& e) {
    return e.what();
  }
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

} // namespace

TEST_CASE("a file appears under its name only when it is committed") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "file";
  atomic_file file(path);
  file.write("one ");
  CHECK_FALSE(std::filesystem::exists(path));
  file.write("two");
  file.commit();
  CHECK(test::content_of(path) == "one two");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("an abandoned file leaves no new file and the old one unchanged") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "file";
  write_atomically(path, "old");
  {
    atomic_file file(path);
    file.write("new");
  }
  CHECK(test::content_of(path) == "old");
  CHECK(entries_in(folder.path()) == 1);
  write_atomically(path, "newer");
  CHECK(test::content_of(path) == "newer");
}

TEST_CASE("a full disk while a file is written leaves the old file intact, and the error names it") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "summary.json";
  write_atomically(path, "old");
  const auto text = complaint(1000, [&] { write_atomically(path, std::string(5000, 'x')); });
  CHECK_THAT(text, ContainsSubstring(path.string()));
  CHECK(test::content_of(path) == "old");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("a temporary file that exceeds a quota is removed") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "report.html";
  write_atomically(path, "old");
  truncation_error = EDQUOT;
  const auto text = complaint(RLIM_INFINITY, [&] { write_atomically(path, "new"); });
  truncation_error = 0;
  CHECK_THAT(text, ContainsSubstring("report.html.part': Disk quota exceeded"));
  CHECK(test::content_of(path) == "old");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("lines that do not fit are not written partially") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "lines";
  line_file lines(path);
  lines.append("first\n");
  const auto text = complaint(10, [&] { lines.append("second line\n"); });
  CHECK_THAT(text, ContainsSubstring(path.string()));
  CHECK(test::content_of(path) == "first\n");
  lines.append("third\n");
  CHECK(test::content_of(path) == "first\nthird\n");
}

TEST_CASE("opening a line file keeps its content") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "lines";
  line_file(path).append("a\n");
  line_file(path).append("b\n");
  CHECK(test::content_of(path) == "a\nb\n");
}

TEST_CASE("errors on a full device and in a missing folder name the file") {
  open_file full("/dev/full", O_WRONLY);
  CHECK_THROWS_AS(full.write("x\n"), std::system_error);
  try {
    write_atomically("/nowhere/at/all", "x");
    FAIL("wrote into a folder that is not there");
  } catch (const std::system_error& e) {
    CHECK_THAT(e.what(), ContainsSubstring("/nowhere/at/all") && ContainsSubstring("No such file"));
    CHECK(e.code() == std::errc::no_such_file_or_directory);
  }
}

TEST_CASE("links, devices, pipes and folders are not replaced under the final or the temporary name") {
  const test::scratch_folder folder;
  const auto target = folder.path() / "another's", link = folder.path() / "link", pipe = folder.path() / "pipe";
  test::write_file(target, "kept");
  std::filesystem::create_symlink(target, link);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto refusal = [](const std::filesystem::path& path) {
    return complaint(RLIM_INFINITY, [&] { write_atomically(path, "x"); });
  };
  CHECK_THAT(refusal(link), ContainsSubstring("link', which is a link, not an ordinary file"));
  CHECK_THAT(refusal(pipe), ContainsSubstring("which is a pipe"));
  CHECK_THAT(refusal("/dev/null"), ContainsSubstring("which is a device"));
  CHECK_THAT(refusal(folder.path()), ContainsSubstring("which is a folder"));
  CHECK_THAT(complaint(RLIM_INFINITY, [&] { line_file{link}; }), ContainsSubstring("which is a link"));
  CHECK_THAT(complaint(RLIM_INFINITY, [&] { line_file{pipe}; }), ContainsSubstring("which is a pipe"));
  const auto file = folder.path() / "file";
  std::filesystem::create_symlink(target, folder.path() / "file.part"); // another user may leave such a link
  CHECK_THAT(refusal(file), ContainsSubstring("file.part', which is a link"));
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(test::content_of(target) == "kept");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("two concurrent writers of one name leave one complete file") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "file";
  const auto write = [&](char letter) {
    for (int time = 0; time < 50; ++time) {
      atomic_file file(path);
      for (int piece = 0; piece < 8; ++piece)
        file.write(std::string(100, letter));
      file.commit();
    }
  };
  std::thread other([&] { write('b'); });
  write('a');
  other.join();
  const auto content = test::content_of(path);
  CHECK((content == std::string(800, 'a') || content == std::string(800, 'b')));
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("a line file that was moved gets no more lines") {
  const test::scratch_folder folder;
  line_file lines(folder.path() / "lines");
  lines.append("a\n");
  std::filesystem::rename(folder.path() / "lines", folder.path() / "away");
  CHECK_THAT(complaint(RLIM_INFINITY, [&] { lines.append("b\n"); }), ContainsSubstring("No such file"));
  CHECK(test::content_of(folder.path() / "away") == "a\n");
}
