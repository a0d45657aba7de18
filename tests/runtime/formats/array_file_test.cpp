#include "runtime/formats/array_file.hpp"
#include "tests/support/array_files.hpp"
#include "tests/support/scratch.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> known{"train_x", "train_y", "names"};
const auto numbers = npy_of<std::int64_t>("<i8", "(3,)", {4, 5, 6});

/// All errors of a file with this content.
std::string error_text_of(const scratch_folder& folder, const std::string& name, const std::string& content) {
  write_file(folder.path() / name, content);
  std::string text;
  const auto read = read_array_file(folder.path() / name, known);
  if (!read)
    for (const auto& finding : read.error())
      text += diagnostic_text(finding) + "\n";
  return text;
}

} // namespace

TEST_CASE("archives, safetensors and folders of .npy files give the same arrays", "[arrays]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.npz", zip_of({{"train_y.npy", numbers}, {"names.npy", npy_of("|S2", "(2,)", "abcd")}}));
  write_file(folder.path() / "train_y.npy", numbers);
  const std::string header = R"({"__metadata__":{"names":"[\"ab\",\"cd\"]"},"train_y":{"dtype":"I64","shape":[3],)"
                             R"("data_offsets":[0,24]}})";
  write_file(folder.path() / "a.safetensors",
             little_endian(header.size(), 8) + header + numbers.substr(numbers.size() - 24));
  for (const char* name : {"a.npz", "a.safetensors", "train_y.npy", "."}) {
    INFO(name);
    const auto arrays = read_array_file(folder.path() / name, known);
    REQUIRE(arrays);
    CHECK(at::equal(arrays->at("train_y").content.values, at::tensor({4, 5, 6}, at::kLong)));
    if (std::string(name).starts_with("a."))
      CHECK(arrays->at("names").content.texts == std::vector<std::string>{"ab", "cd"});
  }
}

TEST_CASE("extensions of array files may have capital letters", "[arrays]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.NPZ", zip_of({{"train_y.npy", numbers}}));
  write_file(folder.path() / "train_y.NPY", numbers);
  const std::string header = R"({"train_y":{"dtype":"U64","shape":[3],"data_offsets":[0,24]}})";
  write_file(folder.path() / "a.SafeTensors",
             little_endian(header.size(), 8) + header + numbers.substr(numbers.size() - 24));
  for (const char* name : {"a.NPZ", "a.SafeTensors", "train_y.NPY", "."}) {
    INFO(name);
    const auto arrays = read_array_file(folder.path() / name, known);
    REQUIRE(arrays);
    CHECK(arrays->at("train_y").content.values.to(at::kLong).equal(at::tensor({4, 5, 6}, at::kLong)));
  }
  write_file(folder.path() / "train_y.npy", numbers);
  CHECK_THAT(error_text_of(folder, "names.npy", npy_of("|S1", "(1,)", "a")),
             ContainsSubstring("train_y.npy: error: the array 'train_y' is in ") &&
                 ContainsSubstring("train_y.NPY, too"));
}

TEST_CASE("errors of an array file name the file and the array", "[arrays]") {
  const scratch_folder folder;
  const auto good = zip_of({{"train_y.npy", numbers}});
  CHECK(error_text_of(folder, "good.npz", good).empty());
  CHECK_THAT(error_text_of(folder, "b.npz", zip_of({{"train_z.npy", numbers}, {"train_x.npy", "short"}})),
             ContainsSubstring("b.npz: error: has an unknown array 'train_z'; did you mean 'train_") &&
                 ContainsSubstring("b.npz: train_x: error: the array is truncated"));
  CHECK_THAT(error_text_of(folder, "c.npz", good.substr(0, good.size() - 5)),
             ContainsSubstring("is the file truncated"));
  CHECK_THAT(error_text_of(folder, "d.npz", ""), ContainsSubstring("the file is empty"));
  CHECK_THAT(error_text_of(folder, "e.txt", "1"),
             ContainsSubstring("expected a file that ends with .safetensors, .npz"));
  CHECK_THAT(error_text_of(folder, "names.npy", numbers.substr(0, 90)), ContainsSubstring("names.npy: error: "));
  const std::string header = R"({"__metadata__":{"names":"ab"}})";
  CHECK_THAT(error_text_of(folder, "f.safetensors", little_endian(header.size(), 8) + header),
             ContainsSubstring("metadata names: error: expected a JSON list of texts"));
}

TEST_CASE("changed bytes of an archive are detected or harmless", "[arrays]") {
  const scratch_folder folder;
  const auto good = zip_of({{"train_y.npy", numbers}, {"train_x.npy", npy_of<float>("<f4", "(2, 2)", {1, 2, 3, 4})}});
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write_file(folder.path() / "m.npz", changed);
    const auto read = read_array_file(folder.path() / "m.npz", known);
    if (read) // unused bytes, such as dates
      CHECK(at::equal(read->at("train_y").content.values, at::tensor({4, 5, 6}, at::kLong)));
  }
}
