#include "runtime/base/atomic_file.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <sys/resource.h>
#include <system_error>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// During its lifetime, no file of this process grows beyond `bytes`: to write() that looks like a full disk.
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

/// What `act` complains of while files are limited, or "".
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

TEST_CASE("a file appears under its name when it is committed, not before") {
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

TEST_CASE("a file that is given up leaves nothing, and the old one as it was") {
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

TEST_CASE("a disk that fills while a file is written leaves the old one whole and names the file") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "summary.json";
  write_atomically(path, "old");
  const auto text = complaint(1000, [&] { write_atomically(path, std::string(5000, 'x')); });
  CHECK_THAT(text, ContainsSubstring(path.string()));
  CHECK(test::content_of(path) == "old");
  CHECK(entries_in(folder.path()) == 1);
}

TEST_CASE("lines that do not fit are not begun") {
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

TEST_CASE("an opened line file keeps what is there") {
  const test::scratch_folder folder;
  const auto path = folder.path() / "lines";
  line_file(path).append("a\n");
  line_file(path).append("b\n");
  CHECK(test::content_of(path) == "a\nb\n");
}

TEST_CASE("a device without space is named, and so is a folder that is not there") {
  line_file full("/dev/full");
  CHECK_THROWS_AS(full.append("x\n"), std::system_error);
  try {
    write_atomically("/nowhere/at/all", "x");
    FAIL("wrote into a folder that is not there");
  } catch (const std::system_error& e) {
    CHECK_THAT(e.what(), ContainsSubstring("/nowhere/at/all") && ContainsSubstring("No such file"));
    CHECK(e.code() == std::errc::no_such_file_or_directory);
  }
}
