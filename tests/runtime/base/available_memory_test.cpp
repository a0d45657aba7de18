#include "runtime/base/available_memory.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

void put(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, text);
}

constexpr std::int64_t mib = 1 << 20;

} // namespace

TEST_CASE("available memory is the machine's if no control group limits the process") {
  const scratch_folder here;
  const auto proc = here.path() / "proc", groups = here.path() / "cgroup";
  put(proc / "meminfo", "MemTotal:       8192 kB\nMemFree: 1 kB\nMemAvailable:   4096 kB\n");
  put(proc / "self/cgroup", "0::/user/session\n");
  put(groups / "user/session/memory.max", "max\n");
  put(groups / "user/session/memory.current", "1\n");
  const auto room = available_memory(proc, groups);
  CHECK(room.bytes == 4 * mib);
  CHECK(room.source == "free on this machine");
  CHECK(available_memory(here.path() / "none", groups).bytes > (std::int64_t{1} << 60));
}

TEST_CASE("the smallest control group limit applies, and its page cache counts as free") {
  const scratch_folder here;
  const auto proc = here.path() / "proc", groups = here.path() / "cgroup";
  put(proc / "meminfo", "MemAvailable:   409600 kB\n");
  put(proc / "self/cgroup", "0::/user/session\n");
  put(groups / "user/session/memory.max", std::to_string(300 * mib));
  put(groups / "user/session/memory.current", std::to_string(mib));
  put(groups / "user/memory.max", std::to_string(200 * mib));
  put(groups / "user/memory.current", std::to_string(150 * mib));
  put(groups / "user/memory.stat", "anon 5\ninactive_file " + std::to_string(30 * mib) + "\n");
  const auto room = available_memory(proc, groups);
  CHECK(room.bytes == 80 * mib); // 200 - (150 - 30)
  CHECK(room.source == "left below the memory limit of the control group /user");
}

TEST_CASE("limits of cgroup version 1 are read, in a container from its root") {
  const scratch_folder here;
  const auto proc = here.path() / "proc", groups = here.path() / "cgroup";
  put(proc / "meminfo", "MemAvailable:   409600 kB\n");
  put(proc / "self/cgroup", "3:cpu,memory:/docker/of-the-host\n1:name=systemd:/x\n");
  put(groups / "memory/memory.limit_in_bytes", std::to_string(64 * mib));
  put(groups / "memory/memory.usage_in_bytes", std::to_string(16 * mib));
  CHECK(available_memory(proc, groups).bytes == 48 * mib);
}
