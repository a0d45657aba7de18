#include "runtime/modules/load_module.hpp"
#include "runtime/modules/module_sandbox.hpp"
#include "runtime/modules/sandbox_restrictions.hpp"
#include "tests/support/cell_program.hpp"
#include "tests/support/hostile_modules.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/script_modules.hpp"
#include "tests/support/unchecked_calls.hpp"
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
constexpr std::size_t files_min = 50; // number that each protection must stop alone (docs/security.md)

/// Targets of file access: an existing and a missing file.
struct targets {
  std::string secret, stolen;
};

using hostile_modules = std::vector<hostile_module>;

/// Operators that access files, called from all places in code.
void add_file_modules(const targets& at, hostile_modules& into) {
  const auto save = fmt::format("torch.save(1, \"{}\")", at.stolen),
             read = fmt::format("torch.from_file(\"{}\", False, 4)", at.secret),
             shared = fmt::format("torch.from_file(\"{}\", True, 4)", at.stolen);
  const auto add = [&](const char* title, const hostile_code& code, bool writes = false) {
    into.push_back({.title = title, .entries = entries_with(code_with(code)), .writes = writes});
  };
  add("forward saves", {.lines = "    " + save + "\n"}, true);
  add("forward reads a file", {.lines = "    y = " + read + "\n    x = torch.add(x, torch.sum(y))\n"});
  add("forward makes a file by mapping it", {.lines = "    y = " + shared + "\n    x = torch.add(x, torch.sum(y))\n"},
      true);
  add("save by its namespace", {.lines = fmt::format("    ops.aten.save(1, \"{}\")\n", at.stolen)}, true);
  add("save by another name", {.lines = fmt::format("    s = torch.save\n    s(1, \"{}\")\n", at.stolen)}, true);
  add("save by another name of torch", {.lines = fmt::format("    t = torch\n    t.save(1, \"{}\")\n", at.stolen)},
      true);
  add("save by another name of ops", {.lines = fmt::format("    o = ops.aten\n    o.save(1, \"{}\")\n", at.stolen)},
      true);
  add("save by autograd's name", {.lines = fmt::format("    torch.autograd.save(1, \"{}\")\n", at.stolen)}, true);
  add("save under the name of a builtin",
      {.lines = fmt::format("    len = torch.save\n    len(1, \"{}\")\n", at.stolen)}, true);
  add("save in a function",
      {.lines = "    y = __torch__.f(x, )\n", .beside = "def f(x: Tensor) -> Tensor:\n  " + save + "\n  return x\n"},
      true);
  add("save in a branch of training", {.lines = "    if self.training:\n      " + save + "\n    else:\n      pass\n"});
  add("save in a loop", {.lines = "    for i in range(2):\n      " + save + "\n"}, true);
  add("save in a loop without turns", {.lines = "    for i in range(0):\n      " + save + "\n"});
  add("a file read in a list of values",
      {.lines = "    y = [" + read + " for i in [1, 2]]\n    x = torch.add(x, torch.sum(y[0]))\n"});
  add("a file read in an index", {.lines = "    y = x[torch.numel(" + read + ")]\n"});
  add("a file read in a condition",
      {.lines = "    if bool(torch.sum(" + read + ")):\n      pass\n    else:\n      pass\n"});
  add("a file read in an assertion", {.lines = "    assert bool(torch.sum(" + read + ")), \"no\"\n"});
  add("a file read in an error",
      {.lines = "    ops.prim.RaiseException(str(" + read + "), \"builtins.ValueError\")\n"});
  add("a default that saves",
      {.lines = "    y = __torch__.f()\n",
       .beside = fmt::format("def f(x: Tensor={}) -> Tensor:\n  return x\n", shared)},
      true);
  add("a default that reads", {.lines = "    y = __torch__.f()\n",
                               .beside = fmt::format("def f(x: Tensor={}) -> Tensor:\n  return x\n", read)});
  add("a constant that reads", {.members = fmt::format("  k : Final[int] = torch.numel({})\n", shared)}, true);
  add("a closure that saves",
      {.lines = "    def g(y: Tensor) -> Tensor:\n      " + save + "\n      return y\n    z = fork(g, x)\n"});
}

/// Methods that run without an explicit call.
void add_modules_with_hooks(const targets& at, hostile_modules& into) {
  const auto shared = fmt::format("torch.from_file(\"{}\", True, 4)", at.stolen);
  const auto set = "  def __setstate__(self: __torch__.Net,\n    state: Tuple[bool]) -> NoneType:\n"
                   "    self.training = torch.ne(torch.numel(" +
                   shared + "), 7)\n    return None\n";
  const auto get = "  def __getstate__(self: __torch__.Net) -> Tuple[bool]:\n    return (True,)\n"s;
  const auto state = "\x80\x02" + "c__torch__\nNet\n)\x81\x88\x85"
                                  "b."s;
  into.push_back({.title = "__setstate__ writes",
                  .entries = entries_with(code_with({.members = get + set}), state),
                  .writes = true});
  into.push_back({.title = "__setstate__ with a pickle of members",
                  .entries = entries_with(code_with({.members = get + set})),
                  .writes = false});
  const auto inner = [&](const std::string& method) {
    return "class Inner(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + method +
           "  def forward(self: __torch__.Inner,\n    x: Tensor) -> Tensor:\n    return x\n";
  };
  const auto nested_pickle = pickled_module(pickled_text("inner") + "c__torch__\nInner\n)\x81\x88\x85"
                                                                    "b");
  auto nested_set = set, nested_get = get;
  for (auto* text : {&nested_set, &nested_get})
    text->replace(text->find("__torch__.Net"), 13, "__torch__.Inner");
  into.push_back({.title = "__setstate__ of a part writes",
                  .entries = entries_with(
                      code_with({.members = "  inner : __torch__.Inner\n", .beside = inner(nested_get + nested_set)}),
                      nested_pickle),
                  .writes = true});
  const auto hook = [&](const std::string& name, const std::string& arguments) {
    return entries_with(code_with({.members = "  " + name + " = [\"h\", ]\n", .beside = ""}) +
                        "  def h(self: __torch__.Net,\n    input: Tuple[Tensor]" + arguments +
                        ") -> NoneType:\n    y = " + shared + "\n    return None\n");
  };
  into.push_back({.title = "a hook before forward", .entries = hook("__forward_pre_hooks__", "")});
  into.push_back({.title = "a hook behind forward", .entries = hook("__forward_hooks__", ",\n    output: Tensor")});
  const auto guard = "class Guard:\n  def __init__(self: __torch__.Guard) -> NoneType:\n    return None\n  def "
                     "__enter__(self: __torch__.Guard) -> NoneType:\n    y = " +
                     shared +
                     "\n    return None\n  def __exit__(self: __torch__.Guard,\n    a: Any,\n    b: Any,\n    c: Any) "
                     "-> NoneType:\n    return None\n";
  into.push_back(
      {.title = "a block that writes when it begins",
       .entries = entries_with(code_with({.lines = "    with __torch__.Guard():\n      pass\n", .beside = guard}))});
}

/// Other names that LibTorch provides: its classes, processes, output, random numbers, raw memory.
void add_modules_with_strange_calls(hostile_modules& into) {
  const auto add = [&](const char* title, const std::string& line) {
    into.push_back({.title = title, .entries = entries_with(code_with({.lines = "    " + line + "\n"}))});
  };
  add("a print", "print(x)");
  add("a print by its operator", "ops.prim.Print(x)");
  add("a fork", "y = fork(__torch__.Net.forward, self, x)");
  add("a call on another machine", "y = ops.prim.rpc_async(\"worker\", self, (x,))");
  add("a socket of the distributed package", "s = __torch__.torch.classes.dist_c10d.Store()");
  add("a broadcast", "y = ops.c10d.broadcast_([x], 1, 0, 0, True, -1)");
  add("a class of LibTorch's", "s = __torch__.torch.classes._nnapi.Compilation()");
  add("a profile", "y = ops.profiler._record_function_enter(\"/etc/passwd\", None)");
  add("a seed for everybody", "torch.manual_seed(1)");
  add("other memory under a tensor", "y = torch.as_strided(x, [1048576], [1], 0)");
  add("other sizes of a tensor", "y = torch.resize_(x, [1048576])");
  add("a tensor without bounds", "y = torch._nested_view_from_buffer(x, x, x, x)");
  add("a file name as an operator", "y = ops.aten.from_buffer(\"/etc/passwd\")");
  add("code of another language", "y = ops.inductor._mm_plus_mm(x, x, x, x, x)");
  into.push_back({.title = "a member of a class of LibTorch's",
                  .entries = entries_with(code_with({.members = "  s : __torch__.torch.classes.dist_c10d.Store\n"}))});
}

/// Pickles that construct objects unknown to the code, and archives that two readers interpret differently.
void add_modules_with_strange_pickles(hostile_modules& into) {
  const auto add = [&](const char* title, const std::string& code, const std::string& member) {
    into.push_back({.title = title,
                    .entries = entries_with(code_with({.lines = code, .members = "  w : Tensor\n"}),
                                            pickled_module(pickled_text("w") + member))});
  };
  const auto tensor = [](std::int64_t numbers, std::int64_t offset, std::int64_t size, std::int64_t stride) {
    const auto number = [](std::int64_t value) {
      return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
    };
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\nFloatStorage\n" +
           pickled_text("0") + pickled_text("cpu") + number(numbers) + "tQ" + number(offset) + number(size) + "\x85" +
           number(stride) + "\x85\x89" + "ccollections\nOrderedDict\n)RtR";
  };
  const auto with_storage = [&](const char* title, const std::string& member, const std::string& line) {
    add(title, line, member);
    into.back().entries.emplace_back("net/data/0", std::string(16, '\1'));
  };
  const std::string use = "    x = torch.add(x, torch.sum(self.w))\n";
  with_storage("a storage beyond its entry", tensor(1 << 20, 0, 1 << 20, 1), use);
  with_storage("a tensor beyond its storage", tensor(4, 0, 1 << 20, 1), use);
  with_storage("a tensor before its storage", tensor(4, -4096, 4, 1), use);
  with_storage("memory beyond a storage written", tensor(4, 0, 4096, 1), "    y = torch.zero_(self.w)\n");
  add("a function of another module", use, "cposix\nsystem\n" + pickled_text("id") + "\x85R");
  add("a reference to another machine", use, "ctorch.distributed.rpc\nrref\n)R");
  add("a number for a tensor", use, "K\x07");
  add("values nested deeper than a stack", use, ")" + std::string(200'000, '\x85'));
  add("a list that contains itself", use,
      "]q\x05(h\x05"
      "e");
  into.push_back(
      {.title = "an object for another with more members",
       .entries = entries_with(
           code_with({.lines = "    y = self.a.b\n    x = torch.add(x, y)\n",
                      .members = "  a : __torch__.Big\n",
                      .beside = "class Small(Module):\n  __parameters__ = []\n  __buffers__ = []\n  c : bool\n"
                                "class Big(Module):\n  __parameters__ = []\n  __buffers__ = []\n  c : bool\n  d : "
                                "bool\n  b : int\n"}),
           pickled_module(pickled_text("a") + "c__torch__\nSmall\n)\x81}(" + pickled_text("c") + "\x88ub"))});
  into.push_back({.title = "a cast that is believed",
                  .entries = entries_with(
                      code_with({.lines = "    y = unchecked_cast(__torch__.Big, x)\n    x = torch.add(x, y.b)\n",
                                 .beside = "class Big:\n  b : int\n"}))});
  auto twice = entries_with(code_with({}));
  twice.emplace_back("net/CODE/__torch__.py", code_with({.lines = "    print(x)\n"}));
  into.push_back({.title = "code under two names that one reader takes for one", .entries = twice});
  auto old = entries_with(code_with({}));
  old.emplace_back("net/model.json", "{}");
  into.push_back({.title = "a format of long ago", .entries = old});
}

/// Modules that consume all time or memory. Static checks alone do not stop those that are `endless`.
void add_greedy_modules(hostile_modules& into) {
  const auto add = [&](const char* title, const hostile_code& code, bool endless) {
    into.push_back({.title = title, .entries = entries_with(code_with(code)), .only_checks = !endless});
  };
  add("an endless loop", {.lines = "    while True:\n      x = torch.add(x, 1)\n"}, true);
  add("a loop of 10^15 turns", {.lines = "    for i in range(1000000000000000):\n      x = torch.add(x, 1)\n"}, true);
  add("a constant of 64 TiB", {.lines = "    y = torch.zeros([17592186044416])\n    x = torch.add(x, torch.sum(y))\n"},
      true);
  add("a result that doubles", {.lines = "    y = x\n    for i in range(60):\n      y = torch.cat([y, y])\n"}, true);
  std::string doubling = "def f40(x: Tensor) -> Tensor:\n  return x\n";
  for (int i = 39; i >= 0; --i)
    doubling +=
        fmt::format("def f{}(x: Tensor) -> Tensor:\n  return __torch__.f{}(__torch__.f{}(x, ), )\n", i, i + 1, i + 1);
  add("calls that double forty times", {.lines = "    y = __torch__.f0(x, )\n", .beside = doubling}, false);
  add("a function that calls itself",
      {.lines = "    y = __torch__.f(x, )\n", .beside = "def f(x: Tensor) -> Tensor:\n  return __torch__.f(x, )\n"},
      false);
  std::string deep = "    y = " + std::string(50'000, '(') + "1" + std::string(50'000, ')') + "\n";
  add("brackets deeper than a stack", {.lines = deep}, false);
}

hostile_modules every_hostile_module(const targets& at) {
  hostile_modules modules;
  add_file_modules(at, modules);
  add_modules_with_hooks(at, modules);
  add_modules_with_strange_calls(modules);
  add_modules_with_strange_pickles(modules);
  add_greedy_modules(modules);
  add_modules_with_unchecked_calls(modules);
  return modules;
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

std::string bytes_of(const hostile_module& module) { return zip_of(module.entries); }
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

bool machine_has_cells() {
  return child_does([] {
           return restrict_process({.seconds = 60, .memory_bytes = std::int64_t{1} << 32}).empty() ? 0 : 1;
         }).status == 0;
}

} // namespace

TEST_CASE("a harmless file with usual remains of tracing and of users is accepted") {
  auto entries = entries_with(code_with({.lines = "    x = torch.mul(x, 2)\n"}));
  for (const auto* const name :
       {"traced_inputs.pkl", "traced_inputs/0", "extra/notes.txt", "code/__torch__.py.debug_pkl"})
    entries.emplace_back(std::string("net/") + name, "anything");
  const scratch_folder folder;
  write_file(folder.path() / "net.pt", zip_of(entries));
  CHECK(load_module(folder.path() / "net.pt", {.input = rows_of_run, .classes = 5, .layers = {.sandbox = false}})
            .has_value());
}

TEST_CASE("hostile files change nothing if only the static checks protect") {
  const watched_folder watched;
  const auto before = watched.state();
  const auto modules = every_hostile_module(watched.at);
  std::size_t tried = 0;
  for (const auto& module : modules) {
    if (!module.only_checks)
      continue;
    ++tried;
    CAPTURE(module.title);
    write_file(watched.folder.path() / "net.pt", bytes_of(module));
    const auto net = load_module(watched.folder.path() / "net.pt",
                                 {.input = rows_of_run, .classes = 5, .layers = {.sandbox = false}});
    std::filesystem::remove(watched.folder.path() / "net.pt");
    const auto reason = net ? std::string{} : diagnostic_text(net.error().front());
    CAPTURE(reason); // printed with -s
    CHECK_FALSE(net.has_value());
    CHECK(watched.state() == before);
  }
  CHECK(tried >= files_min);
}

TEST_CASE("hostile files change nothing if only the sandbox protects") {
  if (!machine_has_cells())
    SKIP("this machine has no sandbox");
  const watched_folder watched;
  const auto before = watched.state();
  const auto modules = every_hostile_module(watched.at);
  CHECK(modules.size() >= files_min);
  for (const auto& module : modules) {
    CAPTURE(module.title);
    const auto bytes = bytes_of(module);
    const sandbox_request question{
        .input = rows_of_run, .trained = false, .checked = false, .seconds = 2, .memory_bytes = std::int64_t{1} << 30};
    const auto end = child_does([&] { return serve_sandbox_request(span_of(bytes), question); });
    CAPTURE(end.error_text, end.status);
    CHECK(watched.state() == before);
    if (module.writes) {
      CHECK(WEXITSTATUS(end.status) == denied_exit_code);
    }
  }
}

TEST_CASE("the hostile files write files if neither protection is active") {
  const watched_folder watched;
  for (const auto& module : every_hostile_module(watched.at)) {
    if (!module.writes)
      continue;
    CAPTURE(module.title);
    write_file(watched.folder.path() / "net.pt", bytes_of(module));
    static_cast<void>(child_does([&] {
      static_cast<void>(
          load_module(watched.folder.path() / "net.pt",
                      {.input = rows_of_run, .classes = 5, .layers = {.checks = false, .sandbox = false}}));
      return 0;
    }));
    CHECK(std::filesystem::remove(watched.at.stolen));
  }
}

TEST_CASE("a process without rights can compute but do nothing else") {
  if (!machine_has_cells())
    SKIP("this machine has no sandbox");
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
  if (!machine_has_cells())
    SKIP("this machine has no sandbox");
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
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", small_convolution());
  const auto good = content_of(folder.path() / "net.pt");
  const auto answer = run_in_sandbox(span_of(good), {.input = {1, 6, 6}, .trained = true});
  if (answer.verdict == sandbox_status::not_supported)
    SKIP("this machine has no sandbox: " << answer.reasons.at(0));
  CAPTURE(answer.reasons);
  CHECK(answer.verdict == sandbox_status::accepted);
  const auto wrong = run_in_sandbox(span_of(good), {.input = {3, 6, 6}});
  CHECK(wrong.verdict == sandbox_status::refused);
  CHECK_THAT(wrong.reasons.at(0), ContainsSubstring("forward failed on rows of shape [16, 3, 6, 6]"));
  const watched_folder watched;
  const auto hostile = bytes_of(every_hostile_module(watched.at).front());
  const auto denied = run_in_sandbox(span_of(hostile), {.input = rows_of_run, .checked = false});
  CHECK_THAT(denied.reasons.at(0),
             ContainsSubstring("it does more than compute: its trial process tried the forbidden system call"));
  const auto endless = run_in_sandbox(
      span_of(zip_of(entries_with(code_with({.lines = "    while True:\n      x = torch.add(x, 1)\n"})))),
      {.input = rows_of_run, .seconds = 2});
  CHECK_THAT(endless.reasons.at(0), ContainsSubstring("took more than 2 s of processor time"));
}

TEST_CASE("a sandbox forks a single-threaded process, else it executes the program again") {
  if (!machine_has_cells())
    SKIP("this machine has no sandbox");
  const cells_that_begin here(sandbox_start::fork_if_single_threaded, "/there/is/no/such/program");
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", small_convolution());
  const auto good = content_of(folder.path() / "net.pt");
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
