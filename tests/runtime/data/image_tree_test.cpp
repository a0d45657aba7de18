#include "runtime/data/image_tree.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using std::filesystem::path;

void add_image(const path& file) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, gray_png(1, 2, 2));
}

/// Creates a tree with one image in each folder.
void add_folders(const path& root, std::initializer_list<const char*> folders) {
  for (const auto* const folder : folders)
    add_image(root / folder / "x.png");
}

std::string warnings_of(const expected<image_tree>& tree) {
  REQUIRE(error_text(tree) == "");
  std::string lines;
  for (const auto& [where, text] : tree->warnings)
    lines += text + "\n";
  return lines;
}

} // namespace

TEST_CASE("parts with other names are parts and not domains", "[data]") {
  const scratch_folder folder;
  add_folders(folder.path(), {"Training/a", "Training/b", "Testing/a", "Testing/b"});
  const auto tree = list_images(folder.path());
  CHECK_THAT(warnings_of(tree),
             ContainsSubstring("'Training' is read as the training part, 'Testing' as the test part"));
  CHECK(tree->classes.domains.empty());
  CHECK((tree->train.size() == 2 && tree->test.size() == 2));
}

TEST_CASE("hidden folders and files that are no images are ignored with a warning", "[data]") {
  const scratch_folder folder;
  const auto root = folder.path();
  add_folders(root, {"a", "b", ".ipynb_checkpoints", "a/.ipynb_checkpoints", "__MACOSX", "__MACOSX/a"});
  for (const auto* const file : {"README.md", "a/labels.txt", "a/.hidden.png", "b/x.npy", ".DS_Store", "a/._x.png"})
    write_file(root / file, "no image");
  const auto tree = list_images(root);
  CHECK(warnings_of(tree) ==
        "4 files without the name of an image are left out: README.md, a/.hidden.png, a/labels.txt, ...\n"
        "3 hidden or system folders are left out: .ipynb_checkpoints, __MACOSX, a/.ipynb_checkpoints\n");
  CHECK(tree->classes.names == std::vector<std::string>{"a", "b"});
  CHECK(tree->train.size() == 2);
}

TEST_CASE("images are recognized by content even if the extension is that of another format", "[data]") {
  const scratch_folder folder;
  const auto root = folder.path();
  for (const auto* const file : {"a/1.PNG", "a/2.jfif", "a/3.bmp", "b/1.png"})
    add_image(root / file);
  CHECK(list_images(root)->train.size() == 4);
  write_file(root / "a/4.bmp", std::string("BM\x46\0\0\0\0\0\0\0", 10));
  CHECK_THAT(error_text(list_images(root)), ContainsSubstring("4.bmp: error: is a BMP image; expected PNG or JPEG"));
}

TEST_CASE("parts below classes or domains are refused with the expected layout", "[data]") {
  const scratch_folder folder;
  add_folders(folder.path(), {"cat/train", "cat/test", "dog/train", "dog/test"});
  CHECK_THAT(error_text(list_images(folder.path())),
             ContainsSubstring("cat/test: error: is named like a part of the data, but is below 'cat'") &&
                 ContainsSubstring("train/cat"));
  const scratch_folder domains;
  add_folders(domains.path(), {"photo/bus", "photo/train", "sketch/bus", "sketch/train"}); // a class called train
  CHECK(list_images(domains.path())->classes.names == std::vector<std::string>{"bus", "train"});
}

TEST_CASE("a part without class folders is refused with a remedy", "[data]") {
  const scratch_folder folder;
  add_folders(folder.path(), {"train/a", "train/b", "Test"});
  CHECK_THAT(error_text(list_images(folder.path())),
             ContainsSubstring("Test: error: holds 1 images and no folders of classes; expected ") &&
                 ContainsSubstring("Test/CLASS/x.png, or neither of them and data.test_share = 0.2"));
}

TEST_CASE("a class that only one part has is refused", "[data]") {
  const scratch_folder folder;
  add_folders(folder.path(), {"train/a", "train/b", "val/a", "val/b", "val/c"});
  CHECK_THAT(error_text(list_images(folder.path())),
             ContainsSubstring("train: error: has no class 'c', which val has; expected the same"));
}
