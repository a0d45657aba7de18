// Facts about the real files, computed with Python alone. First labels, last label, sum of all pixels:
//   python3 -c 'import gzip,sys; l=gzip.open(sys.argv[1]).read()[8:]; p=gzip.open(sys.argv[2]).read()[16:]
//   print(len(l), list(l[:8]), l[-1], sum(p))' LABELS.gz IMAGES.gz
#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include "tests/support/data_files.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

using labels = std::vector<std::int32_t>;

struct facts {
  std::int64_t rows = 0;
  labels first{};
  std::int32_t last = 0;
  std::int64_t pixel_sum = 0;
};

void check(const image_table& table, std::int64_t side, const facts& known) {
  CHECK(table.size() == known.rows);
  CHECK(table.images.sizes() == at::IntArrayRef{known.rows, 1, side, side});
  CHECK(labels(table.labels.begin(), table.labels.begin() + 8) == known.first);
  CHECK(table.labels.back() == known.last);
  CHECK(table.images.sum().item<std::int64_t>() == known.pixel_sum);
  CHECK(table.domains.empty());
}

/// Pixels of image 0 in the file: row 14, columns 13 to 17; with `down` rows 13 to 17, column 14.
labels middle(const at::Tensor& images, bool down) {
  labels values;
  for (int i = 13; i < 18; ++i)
    values.push_back(images[0][0][down ? i : 14][down ? 14 : i].item<std::uint8_t>());
  return values;
}

} // namespace

TEST_CASE("MNIST has the published rows", "[data]") {
  MNEME_NEEDS_DATA(folder, "mnist");
  const auto data = load_data({.name = "mnist", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  check(data->train, 28, {60'000, {5, 0, 4, 1, 9, 2, 1, 3}, 8, 1'567'298'545});
  check(data->test, 28, {10'000, {7, 2, 1, 0, 4, 1, 4, 9}, 6, 264'923'200});
  CHECK(data->classes == 10);
  CHECK(middle(data->train.images, false) == labels{81, 240, 253, 253, 119});
  CHECK(middle(data->train.images, true) == labels{225, 240, 45, 0, 0});
}

TEST_CASE("transposed images of EMNIST files are rotated upright", "[data]") {
  MNEME_NEEDS_DATA(folder, "fashion-mnist");
  const auto data = load_data(
      {.name = "fashion-mnist", .root = folder.parent_path(), .train_rows = 3, .test_rows = 1, .transposed = true}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(middle(data->train.images, true) == labels{226, 217, 223, 222, 219}); // row 14 of the file
  CHECK(middle(data->train.images, false) == labels{228, 217, 213, 200, 245});
  CHECK(data->train.images.is_contiguous());
}

// python3 -c 'import gzip; l=gzip.open("train-labels-idx1-ubyte.gz").read()[8:];
// p=gzip.open("train-images-idx3-ubyte.gz") .read()[16:]; c=[0]*10; r=[i for i,x in enumerate(l) if c[x]<2 and not
// c.__setitem__(x,c[x]+1)] print([l[i] for i in r], sum(sum(p[i*784:i*784+784]) for i in r))'
TEST_CASE("the first two rows of each class of Fashion-MNIST are the published ones", "[data]") {
  MNEME_NEEDS_DATA(folder, "fashion-mnist");
  const auto data =
      load_data({.name = "fashion-mnist", .root = folder.parent_path(), .test_rows = 1, .train_per_class = 2}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.labels == labels{9, 0, 0, 3, 2, 7, 2, 5, 5, 9, 7, 1, 6, 4, 3, 1, 4, 8, 6, 8});
  CHECK(data->train.images.sum().item<std::int64_t>() == 1'171'984);
}

TEST_CASE("Fashion-MNIST has the published rows", "[data]") {
  MNEME_NEEDS_DATA(folder, "fashion-mnist");
  const auto data = load_data({.name = "fashion-mnist", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  check(data->train, 28, {60'000, {9, 0, 0, 3, 0, 2, 7, 2}, 5, 3'431'114'169});
  check(data->test, 28, {10'000, {9, 2, 1, 1, 6, 1, 4, 6}, 5, 573'469'082});
  CHECK(data->mean == std::vector{0.2860});
  CHECK(data->deviation == std::vector{0.3530});
}

TEST_CASE("USPS has images of its own size", "[data]") {
  MNEME_NEEDS_DATA(folder, "usps");
  const auto data = load_data({.name = "usps", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  check(data->train, 16, {7'291, {6, 5, 4, 7, 3, 6, 3, 1}, 1, 121'121'351});
  check(data->test, 16, {2'007, {9, 6, 3, 6, 6, 0, 0, 0}, 1, 35'061'379});
  CHECK(data->mean == std::vector{0.5});
}

TEST_CASE("USPS and emnist47 are found under their file names", "[data]") {
  for (const auto& [name, side, classes] : {std::tuple{"usps", 16u, 10}, {"emnist47", 28u, 47}}) {
    const scratch_folder root;
    const auto at = root.path() / name;
    const auto highest = static_cast<char>(classes - 1);
    std::filesystem::create_directories(at);
    for (const auto* split : {"train", "test"}) {
      const auto start = std::string(name) + "-" + split;
      write_file(at / (start + "-images-idx3-ubyte.gz"), gzipped(idx_images(3, side)));
      write_file(at / (start + "-labels-idx1-ubyte.gz"), gzipped(idx_labels(std::string{highest, '\1', '\2'})));
    }
    const auto data = load_data({.name = name, .root = root.path(), .test_rows = 2}, 1);
    REQUIRE(error_text(data) == "");
    CHECK(data->train.labels == labels{classes - 1, 1, 2});
    CHECK(data->test.images.sizes() == at::IntArrayRef{2, 1, side, side});
    CHECK(data->train.images[2].eq(2).all().item<bool>());
    CHECK(data->classes == classes);
  }
}

TEST_CASE("emnist47 has 800 + 100 images of each of 47 classes", "[data]") {
  MNEME_NEEDS_DATA(folder, "emnist47");
  const auto data = load_data({.name = "emnist47", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  check(data->train, 28, {37'600, {0, 1, 2, 3, 4, 5, 6, 7}, 46, 1'314'808'285});
  check(data->test, 28, {4'700, {0, 1, 2, 3, 4, 5, 6, 7}, 46, 164'985'814});
  CHECK(data->classes == 47);
}

TEST_CASE("EMNIST Balanced is found under its official names and folders", "[data]") {
  for (const char* folder : {"emnist-balanced", "gzip", "EMNIST/raw"}) {
    const scratch_folder root;
    const auto at = root.path() / folder;
    std::filesystem::create_directories(at);
    write_file(at / "emnist-balanced-train-images-idx3-ubyte.gz", gzipped(idx_images(2, 28)));
    write_file(at / "emnist-balanced-train-labels-idx1-ubyte.gz", gzipped(idx_labels("\x2E\x01")));
    write_file(at / "emnist-balanced-test-images-idx3-ubyte", idx_images(1, 28));
    write_file(at / "emnist-balanced-test-labels-idx1-ubyte", idx_labels("\x05"));
    const auto data = load_data({.name = "emnist-balanced", .root = root.path()}, 1);
    REQUIRE(error_text(data) == "");
    CHECK(data->train.labels == labels{46, 1});
    CHECK(data->classes == 47);
  }
}
