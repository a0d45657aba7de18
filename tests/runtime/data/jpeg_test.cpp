#include "runtime/data/jpeg.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include "tests/support/data_files.hpp"
#include "tests/support/jpeg_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const made_jpeg red_and_blue{.width = 40, .height = 24, .left = {250, 10, 10}, .right = {10, 10, 250}};

/// What read_jpeg() says of a file with this content.
std::string refusal(const std::string& content) {
  const scratch_folder folder;
  const auto file = folder.path() / "one.jpg";
  write_file(file, content);
  const auto read = read_jpeg(file, 0);
  REQUIRE_FALSE(read);
  REQUIRE(read.error().size() == 1);
  CHECK(read.error()[0].where.starts_with(file.string()));
  return read.error()[0].text;
}

bool near(const at::Tensor& pixel, std::array<int, 3> colour) {
  for (std::int64_t channel = 0; channel < 3; ++channel)
    if (std::abs(pixel[channel].item<int>() - colour[static_cast<std::size_t>(channel)]) > 4)
      return false;
  return true;
}

} // namespace

TEST_CASE("a JPEG file becomes three planes", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.jpg", jpeg_of(red_and_blue));
  const auto read = read_jpeg(folder.path() / "a.jpg", 0);
  REQUIRE(read);
  REQUIRE(read->sizes() == at::IntArrayRef{3, 24, 40});
  CHECK(near(read->select(2, 3).select(1, 5), {250, 10, 10}));
  CHECK(near(read->select(2, 36).select(1, 20), {10, 10, 250}));
}

TEST_CASE("a grey JPEG file has three equal planes", "[data]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.jpg",
             jpeg_of({.width = 9, .height = 5, .left = {77}, .right = {77}, .colours = JCS_GRAYSCALE}));
  const auto read = read_jpeg(folder.path() / "a.jpg", 0);
  REQUIRE(read);
  CHECK(read->sizes() == at::IntArrayRef{3, 5, 9});
  CHECK((*read == 77).all().item<bool>());
}

TEST_CASE("a large picture comes at the smallest eighth that is large enough", "[data]") {
  const scratch_folder folder;
  const auto file = folder.path() / "a.jpg";
  write_file(file, jpeg_of({.width = 160, .height = 80, .left = {9, 9, 9}, .right = {200, 200, 200}}));
  const auto sizes = [&](std::int64_t shorter_side_min_px) {
    return read_jpeg(file, shorter_side_min_px).value().sizes().vec();
  };
  CHECK(sizes(20) == std::vector<std::int64_t>{3, 20, 40});
  CHECK(sizes(21) == std::vector<std::int64_t>{3, 30, 60});
  CHECK(sizes(75) == std::vector<std::int64_t>{3, 80, 160});
  CHECK(sizes(500) == std::vector<std::int64_t>{3, 80, 160}); // never enlarged
  CHECK(sizes(0) == std::vector<std::int64_t>{3, 80, 160});
}

TEST_CASE("what is no whole JPEG file is refused by name", "[data]") {
  CHECK_THAT(refusal("\x89PNG and so on"), ContainsSubstring("Not a JPEG file"));
  CHECK_THAT(refusal(""), ContainsSubstring("the file is empty"));
  const auto whole = jpeg_of(red_and_blue);
  CHECK_THAT(refusal(whole.substr(0, whole.size() - 60)), ContainsSubstring("is no whole JPEG file"));
  CHECK_THAT(refusal(whole.substr(0, 100)), ContainsSubstring("is no whole JPEG file"));
  CHECK_THAT(refusal(jpeg_of({.width = 8, .height = 8, .colours = JCS_CMYK})), ContainsSubstring("CMYK"));
}

TEST_CASE("a header that claims too much is refused before memory is taken", "[data]") {
  auto lying = jpeg_of(red_and_blue);
  const auto frame = lying.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  lying.replace(frame + 5, 4, "\xFD\xE8\xFD\xE8"); // height and width of 65,000
  CHECK_THAT(refusal(lying), ContainsSubstring("the header states 4225000000 pixels"));
}

TEST_CASE("a progressive file may have the scans of an honest one, and no thousands of them", "[data]") {
  made_jpeg grey{.width = 40, .height = 24, .left = {77}, .right = {99}, .colours = JCS_GRAYSCALE};
  grey.scans = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 5, 0, 2}, {1, {0}, 6, 63, 0, 2}, {1, {0}, 1, 63, 2, 1},
                {1, {0}, 1, 63, 1, 0}};
  const scratch_folder folder;
  write_file(folder.path() / "a.jpg", jpeg_of(grey));
  CHECK(read_jpeg(folder.path() / "a.jpg", 0));
  grey.scans.resize(1);
  for (int k = 1; k < 64; ++k) // each coefficient by itself, and twice
    for (const int low : {1, 0})
      grey.scans.push_back({1, {0}, k, k, low == 0 ? 1 : 0, low});
  CHECK_THAT(refusal(jpeg_of(grey)), ContainsSubstring("more scans than a picture needs"));
}

TEST_CASE("a folder instead of a picture is refused", "[data]") {
  const scratch_folder folder;
  const auto read = read_jpeg(folder.path(), 0);
  REQUIRE_FALSE(read);
  CHECK_THAT(read.error()[0].text, ContainsSubstring("is a folder"));
}
