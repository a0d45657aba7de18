#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "runtime/base/digest.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/mount.h>
#include <system_error>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const checkpoint_label label{.scenario_digest = "0123456789abcdef0123456789abcdef", .program = "1.0"};

std::vector<archive> parts_of(int number, std::int64_t floats = 100) {
  std::vector<archive> parts(2);
  auto text = "part of " + std::to_string(number);
  tensors_ref weights = weights_only(at::full({floats}, static_cast<double>(number)));
  parts[0](number)(text);
  parts[1](weights);
  return parts;
}

std::string accept_all(const checkpoint&) { return ""; }

/// Number in the newest complete checkpoint, 0 if there is none; `broken` counts damaged newer ones.
int newest(const fs::path& folder, std::size_t broken = 0) {
  auto search = find_checkpoint(folder, label, accept_all);
  REQUIRE(search);
  CHECK(search->broken.size() == broken);
  if (!search->newest)
    return 0;
  REQUIRE(search->newest->sections.size() == 2);
  int number = 0;
  std::string text;
  tensors_ref weights;
  search->newest->sections[0](number)(text).expect_end();
  search->newest->sections[1](weights).expect_end();
  CHECK(text == "part of " + std::to_string(number));
  CHECK(weights->at(flat_weights)[99].item<int>() == number);
  return number;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

TEST_CASE("the newest checkpoint is found, and only the given number is kept") {
  const scratch_folder folder;
  const auto path = folder.path() / "checkpoint";
  CHECK(newest(path) == 0);
  checkpoint_folder kept(path, label, 2);
  for (int i = 1; i <= 5; ++i) {
    kept.write(parts_of(i));
    CHECK(newest(path) == i);
    CHECK(files_in(path).size() == std::size_t(std::min(i, 2)));
  }
  checkpoint_folder again(path, label, 3);
  again.write(parts_of(6));
  CHECK(newest(path) == 6);
  CHECK(files_in(path).size() == 3);
}

TEST_CASE("a checkpoint truncated at any byte is skipped in favor of the previous one") {
  const scratch_folder folder;
  checkpoint_folder kept(folder.path(), label, 2);
  kept.write(parts_of(1));
  kept.write(parts_of(2));
  const auto last = files_in(folder.path()).back();
  const auto whole = content_of(last);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(last, std::string_view(whole).substr(0, size));
    CHECK(newest(folder.path(), 1) == 1);
  }
  write_file(last, whole + "x");
  CHECK(newest(folder.path(), 1) == 1);
  write_file(last, whole);
  CHECK(newest(folder.path()) == 2);
}

TEST_CASE("a checkpoint with any flipped bit is skipped in favor of the previous one") {
  const scratch_folder folder;
  checkpoint_folder kept(folder.path(), label, 2);
  kept.write(parts_of(1));
  kept.write(parts_of(2));
  const auto last = files_in(folder.path()).back();
  const auto whole = content_of(last);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    auto flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << byte % 8));
    write_file(last, flipped);
    CHECK(newest(folder.path(), 1) == 1);
  }
}

TEST_CASE("if no checkpoint is intact, none is found and all are named") {
  const scratch_folder folder;
  checkpoint_folder kept(folder.path(), label, 2);
  kept.write(parts_of(1));
  kept.write(parts_of(2));
  for (const auto& path : files_in(folder.path()))
    write_file(path, content_of(path).substr(0, 50));
  write_file(folder.path() / "notes.txt", "not a checkpoint");
  const auto search = find_checkpoint(folder.path(), label, accept_all);
  REQUIRE(search);
  CHECK_FALSE(search->newest);
  REQUIRE(search->broken.size() == 2);
  CHECK_THAT(search->broken[0].where, ContainsSubstring("0000000002.checkpoint"));
  CHECK_THAT(search->broken[0].text, ContainsSubstring("incomplete: its checksum is wrong"));
}

TEST_CASE("an intact but unusable checkpoint is skipped with the reason") {
  const scratch_folder folder;
  checkpoint_folder kept(folder.path(), label, 3);
  for (int i = 1; i <= 3; ++i)
    kept.write(parts_of(i));
  const auto search = find_checkpoint(folder.path(), label, [](const checkpoint& found) {
    auto first = found.sections[0];
    int number = 0;
    first(number);
    if (number == 3)
      first.expect_end(); // throws, since there is more data
    return std::string(number == 1 ? "" : "too new");
  });
  REQUIRE(search);
  REQUIRE(search->broken.size() == 2);
  CHECK_THAT(search->broken[0].text, ContainsSubstring("cannot be read"));
  CHECK(search->broken[1].text == "too new");
  CHECK_THAT(search->newest.value().path.string(), ContainsSubstring("0000000001"));
}

TEST_CASE("a checkpoint of another scenario, program or format is refused with the reason") {
  const scratch_folder folder;
  checkpoint_folder(folder.path(), label, 2).write(parts_of(1));
  const auto refusal = [&](const checkpoint_label& wanted) {
    const auto search = find_checkpoint(folder.path(), wanted, accept_all);
    REQUIRE_FALSE(search);
    return search.error().front().text;
  };
  CHECK_THAT(refusal({.scenario_digest = std::string(32, 'f'), .program = "1.0"}),
             ContainsSubstring("another scenario") && ContainsSubstring(label.scenario_digest));
  CHECK_THAT(refusal({.scenario_digest = label.scenario_digest, .program = "1.1"}),
             ContainsSubstring("mneme 1.0") && ContainsSubstring("mneme 1.1"));
  // Another format version: complete, with a valid checksum.
  const auto path = files_in(folder.path()).front();
  auto bytes = content_of(path);
  bytes[8] = 99;
  bytes.resize(bytes.size() - 16);
  const auto sum = digest_of(std::as_bytes(std::span(bytes)));
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  write_file(path, bytes);
  CHECK_THAT(refusal(label), ContainsSubstring("format 99") && ContainsSubstring("format 4"));
}

TEST_CASE("checkpoints newer than the one that a run resumes from are removed") {
  const scratch_folder folder;
  checkpoint_folder kept(folder.path(), label, 3);
  for (int i = 1; i <= 3; ++i)
    kept.write(parts_of(i));
  write_file(folder.path() / "0000000004.checkpoint.part", "torn");
  kept.forget_after(folder.path() / "0000000001.checkpoint");
  CHECK(newest(folder.path()) == 1);
  CHECK(files_in(folder.path()).size() == 1);
  kept.write(parts_of(4));
  CHECK(newest(folder.path()) == 4);
  kept.forget_after({});
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("a checkpoint that does not fit on the disk leaves earlier ones intact") {
  const scratch_folder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=256k") != 0)
    SKIP("this machine does not let the test mount a small disk");
  {
    checkpoint_folder kept(folder.path(), label, 2);
    kept.write(parts_of(1, 10'000));
    kept.write(parts_of(2, 10'000));
    CHECK_THROWS_AS(kept.write(parts_of(3, 100'000)), std::system_error);
    CHECK(newest(folder.path()) == 2);
    CHECK(files_in(folder.path()).size() == 2);
    kept.write(parts_of(4, 10'000)); // works again when there is space
    CHECK(newest(folder.path()) == 4);
  }
  ::umount2(folder.path().c_str(), MNT_DETACH);
}
