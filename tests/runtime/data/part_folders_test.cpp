#include "runtime/data/part_folders.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using std::filesystem::path;

/// Writes one image into each of the folders.
void add_images(const path& root, std::initializer_list<const char*> folders) {
  for (const auto* const folder : folders) {
    std::filesystem::create_directories(root / folder);
    write_file(root / folder / "x.png", gray_png(1, 2, 2));
  }
}

expected<part_folders> parts_of(const path& root) { return find_parts(root, list_folder(root).value()); }

/// Warnings, one per line, with ROOT for the path of the root.
std::string warnings_of(const part_folders& parts, const path& root) {
  std::string lines;
  for (const auto& [where, text] : parts.warnings)
    lines += "ROOT" + where.substr(root.string().size()) + ": " + text + "\n";
  return lines;
}

} // namespace

TEST_CASE("folders are recognized as parts in every common spelling", "[data]") {
  for (const auto* const name : {"train", "Train", "TRAIN", "training", "Training", "training_set", "trainset",
                                 "seg_train", "Training Images", "train-data", "train2017", "images_train"})
    CHECK(part_role_of(name) == part_role::train);
  for (const auto* const name :
       {"test", "Test", "TESTING", "test_set", "testdata", "eval", "Evaluation", "Test Images"})
    CHECK(part_role_of(name) == part_role::test);
  for (const auto* const name : {"val", "Val", "valid", "Validation", "validation_set", "dev", "val2017"})
    CHECK(part_role_of(name) == part_role::validation);
  for (const auto* const name :
       {"cat", "trainers", "testudo", "valley", "test_simple", "train_test", "set", "", "images"})
    CHECK(part_role_of(name) == part_role::none);
}

TEST_CASE("folders train and test are used as parts without a warning", "[data]") {
  const scratch_folder folder;
  add_images(folder.path(), {"train/a", "test/a"});
  const auto parts = parts_of(folder.path());
  REQUIRE(parts);
  CHECK(parts->train == folder.path() / "train");
  CHECK(parts->test == folder.path() / "test");
  CHECK(parts->warnings.empty());
}

TEST_CASE("parts with other names are used with a warning that names them", "[data]") {
  for (const auto& [train, test] : {std::pair{"Training", "Testing"},
                                    {"Train", "Test"},
                                    {"TRAIN", "TEST"},
                                    {"training_set", "test_set"},
                                    {"train", "eval"}}) {
    const scratch_folder folder;
    const auto root = folder.path();
    add_images(root / train, {"a"});
    add_images(root / test, {"a"});
    const auto parts = parts_of(root);
    REQUIRE(parts);
    CHECK(parts->train == root / train);
    CHECK(parts->test == root / test);
    CHECK(warnings_of(*parts, root) ==
          std::string("ROOT: '") + train + "' is read as the training part, '" + test + "' as the test part\n");
  }
}

TEST_CASE("a validation part becomes the test part only if there is no other", "[data]") {
  const scratch_folder folder;
  const auto root = folder.path();
  add_images(root, {"train/a", "val/a"});
  const auto two = parts_of(root);
  REQUIRE(two);
  CHECK(two->test == root / "val");
  CHECK_THAT(warnings_of(*two, root),
             ContainsSubstring("ROOT: 'train' is read as the training part, 'val' as the test part"));
  add_images(root, {"test/a"});
  const auto three = parts_of(root);
  REQUIRE(three);
  CHECK(three->test == root / "test");
  CHECK_THAT(warnings_of(*three, root),
             ContainsSubstring("ROOT: the validation part 'val' is left out: there is a test part"));
  std::filesystem::rename(root / "test/a/x.png", root / "test/x.png"); // images without labels
  std::filesystem::remove(root / "test/a");
  const auto unlabeled = parts_of(root);
  REQUIRE(unlabeled);
  CHECK(unlabeled->test == root / "val");
  CHECK_THAT(warnings_of(*unlabeled, root),
             ContainsSubstring("ROOT/test: holds no folders of classes and is left out"));
}

TEST_CASE("folders next to the parts are ignored with a warning", "[data]") {
  const scratch_folder folder;
  add_images(folder.path(), {"train/a", "test/a", "single_prediction"});
  const auto parts = parts_of(folder.path());
  REQUIRE(parts);
  CHECK(warnings_of(*parts, folder.path()) ==
        "ROOT: 1 folder ('single_prediction') next to the folders of the parts: left out\n");
}

TEST_CASE("a part inside a folder of the same name is found", "[data]") {
  const scratch_folder folder;
  add_images(folder.path(), {"seg_train/seg_train/a", "seg_test/seg_test/a"});
  const auto parts = parts_of(folder.path());
  REQUIRE(parts);
  CHECK(parts->train == folder.path() / "seg_train/seg_train");
  CHECK(parts->test == folder.path() / "seg_test/seg_test");
}

TEST_CASE("folders named like parts are classes if they contain images", "[data]") {
  const scratch_folder folder;
  add_images(folder.path(), {"bus", "car", "train"});
  const auto parts = parts_of(folder.path());
  REQUIRE(parts);
  CHECK(parts->train == folder.path());
  CHECK(parts->test.empty());
  CHECK(parts->warnings.empty());
}

TEST_CASE("names that only begin like those of parts are classes or domains, with a warning", "[data]") {
  const scratch_folder folder;
  add_images(folder.path(), {"trainA", "testA"});
  const auto parts = parts_of(folder.path());
  REQUIRE(parts);
  CHECK(parts->train == folder.path());
  CHECK_THAT(warnings_of(*parts, folder.path()),
             ContainsSubstring("ROOT: 2 folders ('testA', 'trainA'): read as classes or domains"));
}

TEST_CASE("a test part without training part, and two folders of one part, are refused with a remedy", "[data]") {
  const scratch_folder folder;
  const auto root = folder.path();
  add_images(root, {"Test/a"});
  CHECK_THAT(error_text(parts_of(root)),
             ContainsSubstring("error: has the part 'Test' and no training part; expected") &&
                 ContainsSubstring("data.root = \"" + (root / "Test").string() + "\" with data.test_share = 0.2"));
  add_images(root, {"train/a", "testing/a"});
  CHECK_THAT(error_text(parts_of(root)),
             ContainsSubstring("several folders that are named like a test part: 'Test' and 'testing'"));
}
