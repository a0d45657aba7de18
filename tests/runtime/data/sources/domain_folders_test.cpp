// Data sets in folders by domain and class, NICO++ and OpenImage, with generated files.
#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include "tests/support/jpeg_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using std::filesystem::path;

void put(const path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, content);
}

/// Five uniform gray images, of which the second is a PNG file.
void put_five(const path& folder, int level) {
  const auto value = static_cast<std::uint8_t>(level);
  for (int i = 0; i < 5; ++i)
    if (i == 1)
      put(folder / "b.png", gray_png(value, 30, 24));
    else
      put(folder / (std::string(1, static_cast<char>('a' + i)) + ".jpg"),
          jpeg_of({.width = 24, .height = 30, .left = {value, value, value}, .right = {value, value, value}}));
}

std::vector<int> levels_of(const image_table& table) {
  std::vector<int> values;
  for (std::int64_t row = 0; row < table.size(); ++row)
    values.push_back(table.images[row][0][4][4].item<int>());
  return values;
}

std::string error_text(const expected<raw_data>& result) {
  REQUIRE_FALSE(result);
  std::string text;
  for (const auto& diagnostic : result.error())
    text += diagnostic_text(diagnostic) + "\n";
  return text;
}

/// Six domains of two classes; the gray level of a folder is 20 * domain + 100 * class + 10.
void put_common(const path& root) {
  int domain = 0;
  for (const auto* const name : {"autumn", "dim", "grass", "outdoor", "rock", "water"}) {
    put_five(root / "NICO_DG" / name / "bear", 20 * domain + 10);
    put_five(root / "NICO_DG" / name / "car", 20 * domain + 110);
    ++domain;
  }
}

} // namespace

TEST_CASE("nico-common: classes are below domains, and every fifth image is a test row", "[data]") {
  const scratch_folder root;
  put_common(root.path());
  const auto data = load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->domain_names == std::vector<std::string>{"autumn", "dim", "grass", "outdoor", "rock", "water"});
  CHECK((data->train.images.sizes() == at::IntArrayRef{48, 3, 16, 16}));
  CHECK((data->test.images.sizes() == at::IntArrayRef{12, 3, 16, 16}));
  CHECK(data->test.labels == std::vector<std::int32_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(data->test.domains == std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(levels_of(data->test) == std::vector<int>{10, 110, 30, 130, 50, 150, 70, 170, 90, 190, 110, 210});
  CHECK(data->mean == std::vector<double>{0.485, 0.456, 0.406});
  // Row limits apply per domain.
  const auto few = load_data({.name = "nico-common", .root = root.path(), .train_per_class = 1, .side = 16}, 1);
  REQUIRE(few);
  CHECK(few->train.domains == data->test.domains);
  CHECK(levels_of(few->train) == levels_of(data->test));
}

TEST_CASE("nico-unique: domains are below classes, in name order, with equal numbers per class", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "NICO_Unique";
  put_five(folder / "bear" / "on tree", 20);
  put_five(folder / "bear" / "in water", 40);
  put_five(folder / "car" / "on track", 60);
  put_five(folder / "car" / "at night", 80);
  const auto data = load_data({.name = "nico-unique", .root = root.path(), .side = 8}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->domain_names.size() == 2);
  CHECK(data->test.labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK(data->test.domains == std::vector<std::int32_t>{0, 1, 0, 1});
  CHECK(levels_of(data->test) == std::vector<int>{40, 20, 80, 60});
  put_five(folder / "car" / "in water", 80);
  CHECK_THAT(error_text(load_data({.name = "nico-unique", .root = root.path()}, 1)),
             ContainsSubstring("car") && ContainsSubstring("error: holds 3 folders, but class bear has 2"));
}

TEST_CASE("open-image: each split, domain and class has a folder", "[data]") {
  const scratch_folder root;
  for (int domain = 0; domain < 6; ++domain)
    for (int label = 0; label < 20; ++label) {
      const auto below = path("client_" + std::to_string(domain)) / std::to_string(label);
      put(root.path() / "OpenImage" / "train" / below / "x.png", gray_png(static_cast<std::uint8_t>(label), 9, 9));
      put(root.path() / "OpenImage" / "test" / below / "x.png", gray_png(static_cast<std::uint8_t>(domain), 9, 9));
    }
  const auto data = load_data({.name = "open-image", .root = root.path(), .side = 8}, 1);
  REQUIRE(data);
  CHECK(data->classes == 20);
  CHECK(data->train.size() == 120);
  CHECK(data->train.labels[41] == 1);
  CHECK(data->train.domains[41] == 2);
  CHECK(data->train.images[41][0][0][0].item<int>() == 1);
  CHECK(data->test.images[41][0][0][0].item<int>() == 2);
}

TEST_CASE("a broken image and a class without images are reported with their locations", "[data]") {
  const scratch_folder root;
  put_common(root.path());
  const auto folder = root.path() / "NICO_DG";
  write_file(folder / "dim" / "car" / "b.png", "broken");
  write_file(folder / "rock" / "bear" / "c.jpg", "broken");
  const auto broken = error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1));
  CHECK_THAT(broken, ContainsSubstring("dim/car/b.png: error: is text; expected PNG or JPEG") &&
                         ContainsSubstring("rock/bear/c.jpg: error: is text; expected PNG or JPEG"));
  for (const auto& file : std::filesystem::directory_iterator(folder / "water" / "bear"))
    std::filesystem::remove(file.path());
  CHECK_THAT(error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1)),
             ContainsSubstring("water/bear: error: holds no JPEG or PNG files"));
  std::filesystem::remove_all(folder / "grass" / "car");
  CHECK_THAT(error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1)),
             ContainsSubstring("grass/car: error: cannot be read"));
}

TEST_CASE("nico-common: lists determine training rows, test rows and classes", "[data]") {
  const scratch_folder root;
  put_common(root.path());
  const auto folder = root.path() / "NICO_DG";
  for (const auto* const name : {"autumn", "dim", "grass", "outdoor", "rock", "water"}) {
    const std::string domain = name; // classes and lines in no particular order
    put(folder / (domain + "_train.txt"),
        domain + "/car/c.jpg 0\r\n" + domain + "/bear/b.png 1\n\n" + domain + "/bear/a.jpg 1\n");
    put(folder / (domain + "_test.txt"), domain + "/car/a.jpg 0");
  }
  const auto data = load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->domain_names.size() == 6);
  CHECK(data->train.size() == 18);
  CHECK(std::vector(data->train.labels.begin(), data->train.labels.begin() + 6) ==
        std::vector<std::int32_t>{1, 1, 0, 1, 1, 0});
  CHECK(std::vector(data->train.domains.begin(), data->train.domains.begin() + 6) ==
        std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(levels_of(data->test) == std::vector<int>{110, 130, 150, 170, 190, 210});

  write_file(folder / "dim_train.txt", "dim/car/a.jpg\n../car/a.jpg 0\ndim/car/a.jpg -1\ndim/car/b.png 0\n"
                                       "dim/car/b.png 1\n/etc/x.jpg 0\n");
  const auto broken = error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1));
  CHECK_THAT(broken, ContainsSubstring("dim_train.txt:1: error: expected a path, a space and a label") &&
                         ContainsSubstring("dim_train.txt:2: error: '../car/a.jpg' is outside the data set's folder") &&
                         ContainsSubstring("dim_train.txt:3: error: '-1' is not a label") &&
                         ContainsSubstring("dim_train.txt:5: error: 'dim/car/b.png' is listed twice") &&
                         ContainsSubstring("dim_train.txt:6: error: '/etc/x.jpg' is outside the data set's folder"));
  write_file(folder / "dim_train.txt", "dim/car/a.jpg 0\ndim/car/missing.jpg 2\n");
  CHECK_THAT(error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1)),
             ContainsSubstring("dim/car/missing.jpg"));
  write_file(folder / "dim_train.txt", "dim/car/a.jpg 5\n");
  CHECK_THAT(error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1)),
             ContainsSubstring("no training image of class 2"));
  std::filesystem::remove(folder / "dim_train.txt");
  CHECK_THAT(error_text(load_data({.name = "nico-common", .root = root.path(), .side = 16}, 1)),
             ContainsSubstring("dim_train.txt: error"));
}

TEST_CASE("nico-unique: each class and domain has a list", "[data]") {
  const scratch_folder root;
  const auto folder = root.path() / "NICO_Unique";
  int level = 0;
  for (const auto& [kind, place] :
       {std::pair{"bear", "in water"}, {"bear", "on tree"}, {"car", "at night"}, {"car", "on track"}}) {
    const std::string below = std::string(kind) + "/" + place, label = kind == std::string("car") ? " 1\n" : " 0\n";
    put_five(folder / below, level += 20);
    put(folder / (below + "_train.txt"), below + "/d.jpg" + label + below + "/b.png" + label);
    put(folder / (below + "_test.txt"), below + "/a.jpg" + label);
  }
  const auto data = load_data({.name = "nico-unique", .root = root.path(), .side = 8}, 1);
  REQUIRE(data);
  CHECK(data->classes == 2);
  CHECK(data->train.size() == 8);
  CHECK(data->test.labels == std::vector<std::int32_t>{0, 0, 1, 1});
  CHECK(data->test.domains == std::vector<std::int32_t>{0, 1, 0, 1});
  CHECK(levels_of(data->test) == std::vector<int>{20, 40, 60, 80});
  std::filesystem::remove(folder / "car" / "on track_test.txt");
  CHECK_THAT(error_text(load_data({.name = "nico-unique", .root = root.path()}, 1)),
             ContainsSubstring("on track_test.txt: error"));
}
