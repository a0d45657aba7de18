#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include "tests/support/jpeg_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using std::filesystem::path;

/// A uniform gray image.
std::string gray(int level, unsigned width, unsigned height) {
  const auto value = static_cast<std::uint8_t>(level);
  return jpeg_of({.width = width, .height = height, .left = {value, value, value}, .right = {value, value, value}});
}

void put(const path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, content);
}

/// Two classes with three training images each, and three validation images. Every image has its own gray level.
void put_tiny(const path& root) {
  const auto folder = root / "tiny-imagenet-200";
  put(folder / "wnids.txt", "n00000002\nn00000001\n");
  int level = 10;
  for (const auto* const name : {"n00000001", "n00000002"})
    for (const auto* const number : {"_0", "_1", "_10"})
      put(folder / "train" / name / "images" / (std::string(name) + number + ".JPEG"), gray(level += 10, 64, 64));
  put(folder / "train" / "n00000001" / "n00000001_boxes.txt", "n00000001_0.JPEG\t0\t10\t63\t58\n");
  for (int i = 0; i < 3; ++i)
    put(folder / "val" / "images" / ("val_" + std::to_string(i) + ".JPEG"), gray(200 + i, 64, 64));
  put(folder / "val" / "val_annotations.txt", "val_2.JPEG\tn00000002\t0\t32\t44\t62\n"
                                              "val_0.JPEG\tn00000001\t52\t55\t57\t59\n"
                                              "val_1.JPEG\tn00000002\t4\t0\t60\t55\n");
}

std::vector<int> levels_of(const image_table& table) {
  std::vector<int> values;
  for (std::int64_t row = 0; row < table.size(); ++row)
    values.push_back(table.images[row][0][9][9].item<int>());
  return values;
}

std::string error_text(const expected<raw_data>& result) {
  REQUIRE_FALSE(result);
  std::string text;
  for (const auto& diagnostic : result.error())
    text += diagnostic_text(diagnostic) + "\n";
  return text;
}

} // namespace

TEST_CASE("tiny-imagenet: classes in name order, training rows by file, test rows by the annotation list", "[data]") {
  const scratch_folder root;
  put_tiny(root.path());
  const auto data = load_data({.name = "tiny-imagenet", .root = root.path()}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->mean == std::vector<double>{0.4802, 0.4481, 0.3975});
  CHECK(data->deviation == std::vector<double>{0.2302, 0.2265, 0.2262});
  CHECK(data->train.images.sizes() == at::IntArrayRef{6, 3, 64, 64});
  CHECK(data->train.labels == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(levels_of(data->train) == std::vector<int>{20, 30, 40, 50, 60, 70});
  CHECK(data->train.file_rows.empty());
  CHECK(data->test.labels == std::vector<std::int32_t>{1, 0, 1});
  CHECK(levels_of(data->test) == std::vector<int>{202, 200, 201});
}

TEST_CASE("tiny-imagenet: only kept rows are read, and they keep their numbers", "[data]") {
  const scratch_folder root;
  put_tiny(root.path());
  const auto folder = root.path() / "tiny-imagenet-200";
  write_file(folder / "train/n00000001/images/n00000001_10.JPEG", "broken");
  const auto data = load_data({.name = "tiny-imagenet", .root = root.path(), .test_rows = 1, .train_per_class = 2}, 1);
  REQUIRE(data);
  CHECK(levels_of(data->train) == std::vector<int>{20, 30, 50, 60});
  CHECK(data->train.file_rows == std::vector<std::int64_t>{0, 1, 3, 4});
  CHECK(levels_of(data->test) == std::vector<int>{202});
}

TEST_CASE("tiny-imagenet: damaged files are named", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "tiny-imagenet-200";
  const auto with = [&](const char* file, const std::string& content) {
    std::filesystem::remove_all(folder);
    put_tiny(root.path());
    write_file(folder / file, content);
    return error_text(load_data({.name = "tiny-imagenet", .root = root.path()}, 1));
  };
  CHECK_THAT(with("train/n00000001/images/n00000001_1.JPEG", "broken"),
             ContainsSubstring("n00000001_1.JPEG: error: is text; expected PNG or JPEG"));
  CHECK_THAT(with("val/images/val_1.JPEG", gray(1, 64, 63)),
             ContainsSubstring("val_1.JPEG: error: the image has 64x63 pixels, but this data set has 64x64"));
  CHECK_THAT(with("val/images/val_1.JPEG", gray(1, 640, 640)),
             ContainsSubstring("val_1.JPEG: error: the header states 409600 pixels, but images of this data set have "
                               "at most 262144"));
  for (const auto* const list : {"wnids.txt", "val/val_annotations.txt"}) {
    std::filesystem::remove_all(folder);
    put_tiny(root.path());
    std::filesystem::remove(folder / list);
    REQUIRE(::mkfifo((folder / list).c_str(), 0600) == 0);
    CHECK_THAT(error_text(load_data({.name = "tiny-imagenet", .root = root.path()}, 1)),
               ContainsSubstring(std::string(list) + ": error: is a named pipe; expected an ordinary file"));
  }
  CHECK_THAT(with("wnids.txt", "n00000001\n../../etc\n"),
             ContainsSubstring("wnids.txt:2: error: expected the name of a class"));
  CHECK_THAT(with("wnids.txt", "n00000001\nn00000003\n"), ContainsSubstring("n00000003"));
  CHECK_THAT(with("val/val_annotations.txt", "val_0.JPEG\tn00000001\nval_1.JPEG\tn00000009\n"),
             ContainsSubstring("val_annotations.txt:2: error: expected the name of an image and one of the classes"));
  CHECK_THAT(with("val/val_annotations.txt", "../val_0.JPEG\tn00000001\n"),
             ContainsSubstring("val_annotations.txt:1: error:"));
}

TEST_CASE("imagenet-r: every fifth image of a class is a test row, and all are 224 x 224 pixels", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "imagenet-r";
  int level = 10;
  for (const auto* const name : {"n01443537", "n02000000"})
    for (int i = 0; i < 6; ++i) // art_0.jpg ... art_5.jpg
      put(folder / name / ("art_" + std::to_string(i) + ".jpg"),
          gray(level += 10, 300 + 40 * static_cast<unsigned>(i), 256));
  put(folder / "README.txt", "renditions");
  const auto data = load_data({.name = "imagenet-r", .root = root.path()}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->mean == std::vector<double>{0.485, 0.456, 0.406});
  CHECK(data->train.images.sizes() == at::IntArrayRef{10, 3, 224, 224});
  CHECK(levels_of(data->train) == std::vector<int>{20, 30, 40, 50, 70, 80, 90, 100, 110, 130});
  CHECK(data->train.labels == std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK(levels_of(data->test) == std::vector<int>{60, 120});
}

TEST_CASE("mini-imagenet: the first 500 files of a class are training rows of 84 x 84 pixels", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "mini-imagenet";
  const auto at_84 = gray(30, 84, 84), wide = gray(90, 168, 100);
  for (const auto* const name : {"n01532829", "n02000000"})
    for (int i = 0; i < 502; ++i)
      put(folder / name / fmt::format("{}{:08}.jpg", name, i), i < 500 ? at_84 : wide);
  const auto data = load_data({.name = "mini-imagenet", .root = root.path(), .train_per_class = 2}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->train.images.sizes() == at::IntArrayRef{4, 3, 84, 84});
  CHECK(data->train.labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK(levels_of(data->train) == std::vector<int>{30, 30, 30, 30});
  CHECK(data->test.labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK(levels_of(data->test) == std::vector<int>{90, 90, 90, 90});
  std::filesystem::remove(folder / "n02000000" / "n0200000000000500.jpg");
  put(folder / "n02000000" / "n0200000000000501.jpg", // resized as a whole: black up to the middle
      jpeg_of({.width = 336, .height = 84, .left = {0, 0, 0}, .right = {255, 255, 255}}));
  const auto again = load_data({.name = "mini-imagenet", .root = root.path(), .train_per_class = 1}, 1).value();
  const auto line = again.test.images[2][0][50];
  CHECK(line[38].item<int>() < 5);
  CHECK(line[45].item<int>() > 250);
  for (int i = 500; i < 502; ++i)
    for (const auto* const name : {"n01532829", "n02000000"})
      std::filesystem::remove(folder / name / fmt::format("{}{:08}.jpg", name, i));
  CHECK_THAT(error_text(load_data({.name = "mini-imagenet", .root = root.path()}, 1)),
             ContainsSubstring("no class has more than 500 images"));
}

TEST_CASE("imagenet-subset: folders of classes, resized to data.side", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "imagenet-subset";
  int level = 10;
  for (const auto* const name : {"n01440764", "n02000000"}) {
    for (int i = 0; i < 3; ++i)
      put(folder / "train" / name / fmt::format("{}_{}.JPEG", name, i), gray(level += 10, 100, 80));
    put(folder / "val" / name / "ILSVRC2012_val_1.JPEG", gray(200 + level, 64, 300));
  }
  const auto loaded = [&](std::int64_t side) {
    return load_data({.name = "imagenet-subset", .root = root.path(), .side = side}, 1);
  };
  for (const std::int64_t side : {32, 64}) {
    const auto data = loaded(side);
    REQUIRE(data);
    CHECK(data->classes == 2);
    CHECK(data->train.images.sizes() == at::IntArrayRef{6, 3, side, side});
    CHECK(data->train.labels == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
    CHECK(levels_of(data->train) == std::vector<int>{20, 30, 40, 50, 60, 70});
    CHECK(data->test.labels == std::vector<std::int32_t>{0, 1});
  }
  put(folder / "val" / "n03000000" / "a.JPEG", gray(1, 64, 64));
  CHECK_THAT(error_text(loaded(64)), ContainsSubstring("n03000000: error: this class has no training images in "));
  std::filesystem::remove_all(folder / "val" / "n03000000");
  std::filesystem::remove_all(folder / "val" / "n02000000");
  CHECK_THAT(error_text(loaded(64)), ContainsSubstring("n02000000"));
  std::filesystem::remove_all(folder / "train");
  std::filesystem::create_directories(folder / "train" / "cats");
  CHECK_THAT(error_text(loaded(64)), ContainsSubstring("holds no folder of a class"));
}

TEST_CASE("imagenet-r uses the center crop of an image", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "imagenet-r" / "n01443537";
  for (int i = 0; i < 5; ++i) // left half black, right half white, four times as wide as high
    put(folder / (std::to_string(i) + ".jpg"),
        jpeg_of({.width = 1024, .height = 256, .left = {0, 0, 0}, .right = {255, 255, 255}}));
  const auto data = load_data({.name = "imagenet-r", .root = root.path()}, 1);
  REQUIRE(data);
  const auto line = data->test.images[0][0][100];
  CHECK(line[100].item<int>() < 5);
  CHECK(line[123].item<int>() > 250);
}
