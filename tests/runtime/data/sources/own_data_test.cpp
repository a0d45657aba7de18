#include "runtime/base/digest.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/task_stream.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/array_files.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/png_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using labels = std::vector<std::int32_t>;
using members = std::vector<std::pair<std::string, std::string>>;

void write_below(const std::filesystem::path& file, std::string_view content) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, content);
}

/// Pixel i of image number `picture`.
std::uint8_t pixel(int picture, int i) { return static_cast<std::uint8_t>(picture * 40 + i * 3); }

/// RGB image, 2 high and 3 wide: planes as in arrays, or interleaved as in PNG.
std::string color_planes(int picture) {
  std::string planes;
  for (int i = 0; i < 18; ++i)
    planes += static_cast<char>(pixel(picture, i));
  return planes;
}
std::string color_png(int picture) {
  std::vector<std::uint8_t> samples;
  for (int place = 0; place < 6; ++place)
    for (int channel = 0; channel < 3; ++channel)
      samples.push_back(pixel(picture, channel * 6 + place));
  return png_of(3, 2, PNG_FORMAT_RGB, samples);
}

/// Training images 0, 1 of "cat" and 2 of "dog"; test images 3 of "cat" and 4 of "dog".
void write_pictures(const std::filesystem::path& root) {
  write_below(root / "train/cat/a.png", color_png(0));
  write_below(root / "train/cat/b.PNG", color_png(1));
  write_below(root / "train/dog/c.png", color_png(2));
  write_below(root / "test/cat/d.png", color_png(3));
  write_below(root / "test/dog/e.png", color_png(4));
}
members picture_arrays() {
  return {{"train_x.npy", npy_of("|u1", "(3, 3, 2, 3)", color_planes(0) + color_planes(1) + color_planes(2))},
          {"train_y.npy", npy_of<std::int64_t>("<i8", "(3,)", {0, 0, 1})},
          {"test_x.npy", npy_of("|u1", "(2, 3, 2, 3)", color_planes(3) + color_planes(4))},
          {"test_y.npy", npy_of<std::int64_t>("<i8", "(2,)", {0, 1})}};
}

/// Arrays, some of which are replaced by `changes`.
std::string archive_with(const members& changes, members arrays) {
  for (const auto& [name, content] : changes) {
    std::erase_if(arrays, [&, called = name](const auto& member) { return member.first == called; });
    if (!content.empty())
      arrays.emplace_back(name, content);
  }
  return zip_of(arrays);
}

members number_arrays() {
  return {{"train_x.npy", npy_of<float>("<f4", "(4, 2)", {1, 10, 2, 20, 3, 30, 4, 60})},
          {"train_y.npy", npy_of<std::int64_t>("<i8", "(4,)", {0, 1, 0, 1})},
          {"test_x.npy", npy_of<float>("<f4", "(2, 2)", {5, 50, 6, 0})},
          {"test_y.npy", npy_of<std::int64_t>("<i8", "(2,)", {0, 1})}};
}

std::string error_text_of_arrays(const std::string& archive, data_section data = {}) {
  const scratch_folder folder;
  write_file(folder.path() / "a.npz", archive);
  data.name = "arrays";
  data.file = folder.path() / "a.npz";
  return error_text(load_data(data, 1));
}
} // namespace

TEST_CASE("images in folders and in arrays give the same rows", "[own]") {
  const scratch_folder folder;
  write_pictures(folder.path() / "p");
  write_file(folder.path() / "a.npz", zip_of(picture_arrays()));
  const auto pictures = load_data({.name = "folder", .root = folder.path() / "p", .side = 0}, 1);
  const auto arrays = load_data(
      {.name = "arrays", .file = folder.path() / "a.npz", .layout = array_layout::channels_first}, 1); // 3 pixels wide
  REQUIRE(error_text(pictures) + error_text(arrays) == "");
  CHECK(pictures->train.labels == labels{0, 0, 1});
  CHECK(pictures->class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(pictures->train.images.sizes() == at::IntArrayRef{3, 3, 2, 3});
  CHECK(data_content(*pictures) == data_content(*arrays));
  const auto below = load_data({.name = "folder", .root = folder.path(), .side = 0, .folder = "p"}, 1);
  CHECK(data_content(*pictures) == data_content(*below));
  const auto few = load_data({.name = "folder", .root = folder.path() / "p", .train_per_class = 1, .side = 8}, 1);
  CHECK(few->train.file_rows == std::vector<std::int64_t>{0, 2});
  CHECK(few->train.images.sizes() == at::IntArrayRef{2, 3, 8, 8});
}

TEST_CASE("gray images have one channel, and color images also if data.channels requests it", "[own]") {
  const scratch_folder folder;
  const auto root = folder.path();
  for (const char* split : {"train", "test"})
    for (const char* name : {"x", "y"})
      write_below(root / split / name / "1.png", gray_png(77, 4, 5));
  const data_section data{.name = "folder", .root = root, .side = 0};
  CHECK(load_data(data, 1)->train.images.sizes() == at::IntArrayRef{2, 1, 5, 4});
  write_below(root / "test/y/2.png", png_of(4, 5, PNG_FORMAT_RGB, std::vector<std::uint8_t>(60, 77)));
  CHECK(load_data(data, 1)->train.images.size(1) == 1); // its pixels are gray
  std::vector<std::uint8_t> red(60, 0);
  red[0] = 255;
  write_below(root / "test/y/2.png", png_of(4, 5, PNG_FORMAT_RGB, red));
  CHECK(load_data(data, 1)->train.images.size(1) == 3);
  auto gray = data;
  gray.channels = 1;
  CHECK(load_data(gray, 1)->test.images[2][0][0][0].item<int>() == 76); // 0.299 * 255
}

TEST_CASE("domain folders are read by domain, class and name", "[own]") {
  const scratch_folder folder;
  for (const char* domain : {"sketch", "photo"})
    for (const char* name : {"x", "y"})
      for (const char* file : {"1.png", "2.png", "3.png", "4.png", "5.png"})
        write_below(folder.path() / domain / name / file, gray_png(domain[0] == 's' ? 9 : 200, 3, 3));
  const auto data = load_data({.name = "folder", .root = folder.path(), .side = 0, .test_share = 0.2}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->domain_names == std::vector<std::string>{"photo", "sketch"});
  CHECK(data->train.labels == labels{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(data->test.domains == labels{0, 0, 1, 1});
  CHECK(data->train.images[8][0][0][0].item<int>() == 9);
  CHECK(data->train.file_rows.size() == 16);
  const auto again = load_data({.name = "folder", .root = folder.path(), .side = 0, .test_share = 0.2}, 1);
  CHECK(data_content(*again) == data_content(*data));
  CHECK(load_data({.name = "folder", .root = folder.path(), .side = 0, .test_share = 0.2}, 7)->test.file_rows !=
        data->test.file_rows);
}

TEST_CASE("files that do not belong in an image folder are reported", "[own]") {
  const scratch_folder folder;
  const auto root = folder.path();
  const data_section data{.name = "folder", .root = root, .side = 0};
  CHECK_THAT(error_text(load_data(data, 1)), ContainsSubstring("holds no folders; expected one for each class"));
  write_pictures(root);
  write_below(root / "train/dog/c.png", color_png(2).substr(0, 60));
  write_below(root / "test/dog/e.png", gray_png(1, 4, 4));
  const auto broken = error_text(load_data(data, 1));
  CHECK_THAT(broken, ContainsSubstring("train/dog/c.png: error: is a damaged or truncated PNG image") &&
                         ContainsSubstring("test/dog/e.png: error: the image has 4x4 pixels, but ") &&
                         ContainsSubstring("train/cat/a.png has 3x2; expected one size, or data.side"));
  write_below(root / "train/emu/x.webp", "RIFF....WEBPVP8 ");
  write_below(root / "test/gnu/labels.txt", "nothing");
  write_below(root / "test/stray.png", color_png(0));
  CHECK_THAT(error_text(load_data(data, 1)),
             ContainsSubstring("x.webp: error: is a WebP image; expected PNG or JPEG") &&
                 ContainsSubstring("test/gnu: error: holds no PNG or JPEG files") &&
                 ContainsSubstring("test/stray.png: error: is next to the folders"));
  std::filesystem::remove(root / "train/emu/x.webp");
  std::filesystem::remove_all(root / "test/gnu");
  std::filesystem::remove(root / "test/stray.png");
  write_below(root / "train/emu/x.png", color_png(0));
  CHECK_THAT(error_text(load_data(data, 1)), ContainsSubstring("test: error: has no class 'emu', which train has"));
  CHECK_THAT(error_text(load_data({.name = "folder"}, 1)), ContainsSubstring("data.root: error: is not set"));
  CHECK_THAT(error_text(load_data({.name = "folder", .root = root, .folder = "../x"}, 1)),
             ContainsSubstring("data.folder: error: '../x' is not below the data"));
}

TEST_CASE("the channel axis is the one of size 1 or 3, or the one that a key sets", "[own]") {
  const scratch_folder folder;
  const data_section data{.name = "arrays", .file = folder.path() / "a.npz"};
  const auto load_with = [&](const std::string& train, const std::string& test, const data_section& section) {
    auto arrays = picture_arrays();
    arrays[0].second = npy_of("|u1", train, color_planes(0) + color_planes(1) + color_planes(2));
    arrays[2].second = npy_of("|u1", test, color_planes(3) + color_planes(4));
    write_file(folder.path() / "a.npz", zip_of(arrays));
    return load_data(section, 1);
  };
  const auto last = load_with("(3, 2, 3, 3)", "(2, 2, 3, 3)", data);
  CHECK(last->train.images.sizes() == at::IntArrayRef{3, 3, 2, 3});
  CHECK(last->train.images[0][2][1][0].item<int>() == pixel(0, 11)); // line 1, pixel 0, channel 2
  CHECK_THAT(error_text(load_with("(3, 3, 2, 3)", "(2, 3, 2, 3)", data)),
             ContainsSubstring("train_x: error: the channel axis of shape [3, 3, 2, 3] is ambiguous: each of the "
                               "second and the last is 1 or 3; expected data.layout"));
  auto chosen = data;
  chosen.layout = array_layout::channels_first;
  CHECK(load_with("(3, 3, 2, 3)", "(2, 3, 2, 3)", chosen)->train.images.size(3) == 3);
  CHECK_THAT(error_text(load_with("(3, 2, 9, 1)", "(2, 2, 3, 3)", data)),
             ContainsSubstring("test_x: error: rows have the shape [3, 2, 3] (channels, height, width), and those of "
                               "train_x [1, 2, 9]; expected the same"));
  CHECK(load_with("(3, 9, 2)", "(2, 9, 2)", data)->train.images.sizes() == at::IntArrayRef{3, 1, 9, 2});
  CHECK(load_with("(3, 18)", "(2, 18)", data)->train.images.sizes() == at::IntArrayRef{3, 1, 1, 18});
}

TEST_CASE("rows of numbers stay unchanged, or are normalized by the training rows", "[own]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.npz", zip_of(number_arrays()));
  scenario settings;
  settings.data = {.name = "arrays", .file = folder.path() / "a.npz"};
  settings.tasks.kind = task_kind::single;
  const auto plain = make_task_stream(settings, load_data(settings.data, 1).value());
  REQUIRE(plain);
  CHECK(plain->train->shape() == std::array<std::int64_t, 3>{1, 1, 2});
  CHECK(plain->train->vectors.equal(at::tensor({1.F, 10.F, 2.F, 20.F, 3.F, 30.F, 4.F, 60.F}).view({4, 2})));
  CHECK(plain->train->scale.empty());
  settings.data.normalize = normalization::measured;
  const auto measured = make_task_stream(settings, load_data(settings.data, 1).value());
  const auto& vectors = measured->train->vectors;
  CHECK(vectors.mean(0).abs().max().item<float>() < 1e-6F);
  CHECK(at::allclose(vectors.square().mean(0), at::ones({2})));
  CHECK(at::allclose(measured->test->vectors[0], at::tensor({2.5F / std::sqrt(1.25F), 20.F / std::sqrt(350.F)})));
  // numpy: (x - train.min(0))
  // (train.max(0) - train.min(0)), as in scikit-learn's MinMaxScaler.
  settings.data.normalize = normalization::unit;
  const auto unit = make_task_stream(settings, load_data(settings.data, 1).value());
  CHECK(
      at::allclose(unit->train->vectors, at::tensor({0.F, 0.F, 1.F / 3, 0.2F, 2.F / 3, 0.4F, 1.F, 1.F}).view({4, 2})));
  CHECK(at::allclose(unit->test->vectors, at::tensor({4.F / 3, 0.8F, 5.F / 3, -0.2F}).view({2, 2})));
}

TEST_CASE("the vocabulary is counted, or tokens must be below the given size", "[own]") {
  const scratch_folder folder;
  auto arrays = number_arrays();
  arrays[0].second = npy_of<std::int64_t>("<i8", "(4, 2)", {0, 1, 2, 3, 4, 5, 6, 7});
  arrays[2].second = npy_of<std::int32_t>("<i4", "(2, 2)", {1, 9, 2, 2});
  write_file(folder.path() / "a.npz", zip_of(arrays));
  CHECK(load_data({.name = "arrays", .file = folder.path() / "a.npz"}, 1)->tokens == 10);
  CHECK(load_data({.name = "arrays", .tokens = 50, .file = folder.path() / "a.npz"}, 1)->tokens == 50);
  CHECK_THAT(error_text_of_arrays(zip_of(arrays), {.tokens = 9}),
             ContainsSubstring("test_x: error: row 0 has the token 9; expected 0 to 8"));
}

TEST_CASE("errors of arrays name array and row and are reported together", "[own]") {
  const auto numbers = number_arrays();
  CHECK(error_text_of_arrays(zip_of(numbers)).empty());
  const auto bad = error_text_of_arrays(
      archive_with({{"train_x.npy", npy_of<float>("<f4", "(4, 2)", {1, 2, NAN, 4, 5, 6, 7, INFINITY})},
                    {"train_y.npy", npy_of<std::int64_t>("<i8", "(4,)", {0, -1, 0, 1})},
                    {"test_x.npy", npy_of<double>("<f8", "(2, 2)", {1, 2, 3, 4})},
                    {"test_y.npy", npy_of<float>("<f4", "(2,)", {0, 1})}},
                   numbers));
  CHECK_THAT(bad, ContainsSubstring("train_x: error: row 1 has a value that is nan") &&
                      ContainsSubstring("train_x: error: row 3 has a value that is inf") &&
                      ContainsSubstring("train_y: error: row 1 has the label -1; expected 0 to ") &&
                      ContainsSubstring("test_x: error: the dtype is float64; expected uint8 (images), float32"));
  CHECK_THAT(error_text_of_arrays(archive_with({{"test_y.npy", npy_of<float>("<f4", "(2,)", {0, 0.5F})}}, numbers)),
             ContainsSubstring("test_y: error: row 1 has the label 0.5; expected a whole number"));
  CHECK_THAT(
      error_text_of_arrays(archive_with({{"test_y.npy", npy_of<std::uint64_t>("<u8", "(2,)", {0, ~0ULL})}}, numbers)),
      ContainsSubstring("test_y: error: row 1 has the label 9223372036854775807; expected 0 to "));
  CHECK_THAT(
      error_text_of_arrays(archive_with({{"train_y.npy", npy_of<std::int64_t>("<i8", "(4,)", {0, 3, 0, 1})}}, numbers)),
      ContainsSubstring("class 2 of 4 classes has no training row") &&
          ContainsSubstring("class 3 of 4 classes has no test row"));
  CHECK_THAT(error_text_of_arrays(archive_with({{"class_names.npy", npy_of("|S1", "(1,)", "a")}}, numbers)),
             ContainsSubstring("train_y: error: row 1 has the label 1; expected 0 to 0"));
  CHECK_THAT(error_text_of_arrays(archive_with({{"class_names.npy", npy_of("|S1", "(2,)", "a\x1b")}}, numbers)),
             ContainsSubstring("class_names: error: the name '?' cannot be shown"));
  CHECK_THAT(error_text_of_arrays(archive_with({{"train_y.npy", ""}}, numbers)),
             ContainsSubstring("has no array 'train_y'; expected train_x and train_y"));
  CHECK_THAT(
      error_text_of_arrays(archive_with({{"train_y.npy", npy_of<std::int64_t>("<i8", "(3,)", {0, 1, 0})}}, numbers)),
      ContainsSubstring("train_y: error: the shape is [3]; expected [4], a label for each row"));
  CHECK_THAT(error_text_of_arrays(
                 archive_with({{"train_domain.npy", npy_of("|u1", "(4,)", std::string("\0\1\0\1", 4))}}, numbers)),
             ContainsSubstring("train_domain and test_domain belong together"));
  CHECK_THAT(error_text_of_arrays(archive_with({{"test_x.npy", ""}, {"test_y.npy", ""}}, numbers)),
             ContainsSubstring("has no test part; add one, or set data.test_share"));
  CHECK_THAT(error_text_of_arrays(zip_of(numbers), {.test_share = 0.5}),
             ContainsSubstring("has a test part; expected 0, since otherwise a second test part would be drawn"));
  CHECK_THAT(error_text(load_data({.name = "arrays"}, 1)), ContainsSubstring("data.file: error: names no file"));
}

TEST_CASE("labels may have any integer dtype", "[own]") {
  const scratch_folder folder;
  const auto file = folder.path() / "a.npz";
  const auto content_with = [&](const std::string& train, const std::string& test) {
    write_file(file, archive_with({{"train_y.npy", train}, {"test_y.npy", test}}, number_arrays()));
    const auto data = load_data({.name = "arrays", .file = file}, 1);
    CHECK(error_text(data) == "");
    return data ? hex_text(data_content(*data)) : "";
  };
  const auto expected =
      content_with(npy_of<std::int64_t>("<i8", "(4,)", {0, 1, 0, 1}), npy_of<std::int64_t>("<i8", "(2,)", {0, 1}));
  const auto content_of = [&]<class Number>(const std::string& type, Number low, Number high) {
    return content_with(npy_of<Number>(type, "(4,)", {low, high, low, high}),
                        npy_of<Number>(type, "(2,)", {low, high}));
  };
  CHECK(content_of("<u8", std::uint64_t{0}, std::uint64_t{1}) == expected);
  CHECK(content_of("<u4", std::uint32_t{0}, std::uint32_t{1}) == expected);
  CHECK(content_of("<u2", std::uint16_t{0}, std::uint16_t{1}) == expected);
  CHECK(content_of("|u1", std::uint8_t{0}, std::uint8_t{1}) == expected);
  CHECK(content_of("|b1", std::uint8_t{0}, std::uint8_t{1}) == expected);
  CHECK(content_of("<i4", std::int32_t{0}, std::int32_t{1}) == expected);
  CHECK(content_of("<i2", std::int16_t{0}, std::int16_t{1}) == expected);
  CHECK(content_of("|i1", std::int8_t{0}, std::int8_t{1}) == expected);
  CHECK(content_of("<f2", std::uint16_t{0}, std::uint16_t{0x3C00}) == expected); // bits of 0 and 1
  CHECK(content_of("<f4", 0.0F, 1.0F) == expected);
  CHECK(content_of("<f8", 0.0, 1.0) == expected);
  CHECK(content_of(">i8", std::int64_t{0}, std::int64_t{1} << 56) == expected); // big-endian
  CHECK(content_of(">u2", std::uint16_t{0}, std::uint16_t{0x0100}) == expected);
}

TEST_CASE("a scenario digest contains the content of user data, but not their location", "[own]") {
  const scratch_folder folder;
  const auto content = [&](data_section data) { return user_data_digest(data); };
  write_file(folder.path() / "a.npz", "1");
  write_file(folder.path() / "b.npz", "1");
  const auto first = content({.name = "arrays", .file = folder.path() / "a.npz"});
  CHECK(content({.name = "arrays", .file = folder.path() / "b.npz"}) == first);
  write_file(folder.path() / "b.npz", "2");
  CHECK(content({.name = "arrays", .file = folder.path() / "b.npz"}) != first);
  write_pictures(folder.path() / "p");
  const auto pictures = content({.name = "folder", .root = folder.path() / "p"});
  CHECK(content({.name = "folder", .root = folder.path(), .folder = "p"}) == pictures);
  write_below(folder.path() / "p/train/dog/more.png", color_png(7));
  CHECK(content({.name = "folder", .root = folder.path() / "p"}) != pictures);
  CHECK(user_data_digest({.name = "mnist"}).empty());
}
