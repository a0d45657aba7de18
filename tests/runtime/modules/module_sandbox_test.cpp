#include "runtime/modules/module_sandbox.hpp"
#include "runtime/modules/sandbox_restrictions.hpp"
#include "tests/support/cell_program.hpp"
#include "tests/support/module_files.hpp"
#include <arpa/inet.h>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::array<std::int64_t, 3> rows_of_run{1, 6, 6};
/// Targets of file access: an existing and a missing file.
struct targets {
  std::string secret, stolen;
};

/// Products of matrices of ones [4096, 4096], which take minutes and whose count of multiplications is within the
/// limit.
made_program slow_program() {
  constexpr std::int64_t side = 4096, products = 100;
  made_program made;
  auto product = made.call("full.default", {{"size", numbers({side, side})}, {"fill_value", real(1.0 / side)}});
  for (std::int64_t i = 0; i < products; ++i)
    product = made.call("matmul.default", {{"self", product}, {"other", product}});
  const auto sum = made.call("sum.default", {{"self", product}});
  made.call("add.Tensor", {{"self", flattened(made, tensor_named("x"))}, {"other", sum}});
  return made;
}

/// Folder with one readable file, and its state.
struct watched_folder {
  watched_folder() { write_file(at.secret, "0123456789abcdef"); }
  /// Names and contents of all files.
  [[nodiscard]] std::string state() const {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      text += entry.path().filename().string() + ":" + content_of(entry.path()) + "\n";
    return text;
  }
  scratch_folder folder{};
  targets at{(folder.path() / "secret").string(), (folder.path() / "stolen").string()};
};

std::span<const std::uint8_t> span_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Result of a child process that ran a function with its stdout in a pipe.
struct child_end {
  std::string error_text{};
  int status = 0;
};

child_end child_does(const std::function<int()>& act) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto id = ::fork();
  REQUIRE(id >= 0);
  if (id == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGTERM}) // handled by Catch2
      ::signal(signal, SIG_DFL);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    int code = 1;
    try {
      code = act();
    } catch (...) {
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  child_end end;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], piece, sizeof piece)) > 0;)
    end.error_text.append(piece, static_cast<std::size_t>(count));
  ::close(ends[0]);
  ::waitpid(id, &end.status, 0);
  return end;
}

bool machine_has_sandbox() {
  return child_does([] {
           return restrict_process({.seconds = 60, .memory_bytes = std::int64_t{1} << 32}).empty() ? 0 : 1;
         }).status == 0;
}

} // namespace

TEST_CASE("a process without rights can compute but do nothing else") {
  if (!machine_has_sandbox())
    SKIP("this machine gives no cells");
  static_cast<void>(at::ones({100}).sum()); // LibTorch's first operator detects the processor
  const watched_folder watched;
  const auto before = watched.state();
  const auto denied = [](const std::function<void()>& act) {
    const auto end = child_does([&] {
      if (!restrict_process({.seconds = 60, .memory_bytes = std::int64_t{1} << 32}).empty())
        return 1;
      act();
      return 0;
    });
    const bool told =
        WIFEXITED(end.status) && WEXITSTATUS(end.status) == denied_exit_code && end.error_text.starts_with("!");
    return told || (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSYS); // blocked signals reach no handler
  };
  CHECK_FALSE(denied([] { static_cast<void>(at::ones({100}).sum()); }));
  CHECK(denied([&] { ::open(watched.at.secret.c_str(), O_RDONLY); }));
  CHECK(denied([&] { ::open(watched.at.stolen.c_str(), O_WRONLY | O_CREAT, 0600); }));
  CHECK(denied([&] { ::unlink(watched.at.secret.c_str()); }));
  CHECK(denied([&] { ::rename(watched.at.secret.c_str(), watched.at.stolen.c_str()); }));
  CHECK(denied([&] { ::mkdir(watched.at.stolen.c_str(), 0700); }));
  CHECK(denied([&] {
    struct ::stat found {};
    ::stat(watched.at.secret.c_str(), &found);
  }));
  CHECK(denied([] { ::socket(AF_INET, SOCK_STREAM, 0); }));
  CHECK(denied([] { ::socket(AF_UNIX, SOCK_DGRAM, 0); }));
  CHECK(denied([] { ::fork(); }));
  CHECK(denied([] { ::execl("/bin/true", "true", nullptr); }));
  CHECK(denied([] { std::thread([] {}).join(); }));
  CHECK(denied([] { ::kill(::getppid(), SIGTERM); }));
  CHECK(denied([] { ::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr); }));
  CHECK(denied([] { ::memfd_create("x", 0); }));
  CHECK(denied([] { ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0); }));
  CHECK(denied([] {
    char letter = 0;
    ::read(0, &letter, 1);
  }));
  CHECK(denied([] { ::dup2(1, 5); }));
  CHECK(denied([] { ::usleep(1000); }));
  CHECK(denied([] { static_cast<void>(::write(3, "x", 1)); }));
  CHECK(watched.state() == before);
}

TEST_CASE("the limits of a sandbox end a process that takes too long or too much memory") {
  if (!machine_has_sandbox())
    SKIP("this machine gives no cells");
  const auto ended = [](const std::function<void()>& act) {
    return child_does([&] {
      if (!restrict_process({.seconds = 1, .memory_bytes = std::int64_t{1} << 28}).empty())
        return 1;
      act();
      return 0;
    });
  };
  CHECK(WTERMSIG(ended([] {
                   for (std::atomic<int> turns = 0;; ++turns) {
                   }
                 }).status) == SIGXCPU);
  CHECK(WEXITSTATUS(ended([] { static_cast<void>(at::ones({1 << 28})); }).status) == 1); // throws
}

TEST_CASE("the program reports a valid module, and one that the sandbox rejects") {
  const cells_that_begin here(GENERATE(sandbox_start::exec_program, sandbox_start::fork_if_single_threaded));
  const auto good = small_convolution().bytes();
  const auto answer = run_in_sandbox(span_of(good), {.input = {1, 6, 6}, .trained = true});
  if (answer.verdict == sandbox_status::not_supported)
    SKIP("this machine gives no cells: " << answer.reasons.at(0));
  CAPTURE(answer.reasons);
  CHECK(answer.verdict == sandbox_status::accepted);
  const auto wrong = run_in_sandbox(span_of(good), {.input = {3, 6, 6}});
  CHECK(wrong.verdict == sandbox_status::refused);
  CHECK_THAT(wrong.reasons.at(0), ContainsSubstring("forward failed on rows of shape [16, 3, 6, 6]"));
  const auto endless = run_in_sandbox(span_of(slow_program().bytes()), {.input = rows_of_run, .seconds = 1});
  CHECK_THAT(endless.reasons.at(0), ContainsSubstring("took more than 1 s of processor time"));
}

TEST_CASE("a sandbox forks a single-threaded process, else it executes the program again") {
  if (!machine_has_sandbox())
    SKIP("this machine gives no cells");
  const cells_that_begin here(sandbox_start::fork_if_single_threaded, "/there/is/no/such/program");
  const auto good = small_convolution().bytes();
  const sandbox_request question{.input = {1, 6, 6}, .trained = true};
  CHECK(run_in_sandbox(span_of(good), question).verdict == sandbox_status::accepted);
  std::atomic<bool> has_to_end = false;
  std::thread other([&] { has_to_end.wait(false); });
  const auto anew = run_in_sandbox(span_of(good), question);
  has_to_end = true;
  has_to_end.notify_one();
  other.join();
  CHECK(anew.verdict == sandbox_status::not_supported);
  CHECK_THAT(anew.reasons.at(0), ContainsSubstring("/there/is/no/such/program"));
}
