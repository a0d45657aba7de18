#include "runtime/data/idx.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/resource.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr idx_layout tiny{.height = 2, .width = 2, .classes = 3};

/// Folder with an images and a labels file.
struct idx_pair {
  scratch_folder folder{};
  std::filesystem::path images = folder.path() / "images", labels = folder.path() / "labels";
  idx_pair(const std::string& images_content, const std::string& labels_content) {
    write_file(images, images_content);
    write_file(labels, labels_content);
  }
  [[nodiscard]] expected<image_table> read(row_limits limits = {}) const {
    return read_idx(images, labels, tiny, limits);
  }
};

const std::string five_labels("\0\1\2\0\1", 5);

} // namespace

TEST_CASE("images and labels of idx files are read in file order", "[data]") {
  const idx_pair files(idx_images(5, 2), idx_labels(five_labels));
  const auto table = files.read();
  REQUIRE(error_text(table) == "");
  CHECK(table->labels == std::vector<std::int32_t>{0, 1, 2, 0, 1});
  CHECK(table->images.sizes() == at::IntArrayRef{5, 1, 2, 2});
  CHECK(table->images.scalar_type() == at::kByte);
  CHECK(table->images.select(0, 3).eq(3).all().item<bool>());
}

TEST_CASE("idx files are read only as far as the limits require", "[data]") {
  const idx_pair files(idx_images(5, 2), idx_labels(five_labels));
  CHECK(files.read({.rows = 2})->size() == 2);
  CHECK(files.read({.rows = 9})->size() == 5);
  CHECK(files.read({.per_class = 1})->size() == 3); // classes 0, 1, 2 are the first three rows
  CHECK(files.read({.per_class = 2})->size() == 5); // class 2 has only one row, so all rows are read
  CHECK(files.read({.rows = 4, .per_class = 1})->size() == 3);
}

TEST_CASE("an idx file with the wrong magic number is refused", "[data]") {
  const idx_pair exchanged(idx_labels(five_labels), idx_images(5, 2));
  CHECK_THAT(error_text(exchanged.read()),
             ContainsSubstring("labels: byte 0: error: the file begins with 0x00000803, but an idx1 file of unsigned "
                               "bytes begins with 0x00000801: are images and labels swapped?"));
  const idx_pair other("GIF89a, not idx", idx_labels(five_labels));
  CHECK_THAT(error_text(other.read()), ContainsSubstring("images: byte 0: error: the file begins with 0x47494638"));
}

TEST_CASE("packed labels are unpacked only if there are images for them", "[data]") {
  constexpr std::size_t rows = 100'000'000;
  const scratch_folder folder;
  write_file(folder.path() / "images", idx_images(5, 2));
  write_file(folder.path() / "labels.gz", gzipped(idx_labels(std::string(rows, '\0'))));
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  CHECK_THAT(error_text(read_idx(folder.path() / "images", folder.path() / "labels.gz", tiny, {})),
             ContainsSubstring("the file states 5 images, but its labels file 100000000 labels"));
  CHECK(peak_kib() - before < 100'000); // the number of rows in the header would take 500 MB
}

TEST_CASE("packed images that match their labels take no memory if no data set has so many rows", "[data]") {
  constexpr std::uint32_t rows = 3'000'000;
  const scratch_folder folder;
  write_file(folder.path() / "images.gz", gzipped(idx_images(1, 2, rows) + std::string(4UL * rows - 4, '\0')));
  write_file(folder.path() / "labels.gz", gzipped(idx_labels(std::string(rows, '\0'))));
  CHECK_THAT(error_text(read_idx(folder.path() / "images.gz", folder.path() / "labels.gz", tiny, {})),
             ContainsSubstring("labels.gz: unpacked byte 4: error: the header states 3000000 rows, but data sets in "
                               "this format have at most 1000000"));
}

TEST_CASE("different numbers of images and labels are refused", "[data]") {
  const idx_pair files(idx_images(4, 2), idx_labels(five_labels));
  CHECK_THAT(error_text(files.read()),
             ContainsSubstring("images: byte 4: error: the file states 4 images, but its labels file 5 labels"));
}

TEST_CASE("images of an unexpected size are refused", "[data]") {
  const idx_pair files(idx_images(5, 3), idx_labels(five_labels));
  CHECK_THAT(error_text(files.read()),
             ContainsSubstring("images: byte 8: error: the images are 3x3, but this data set has 2x2"));
}

TEST_CASE("an idx header that claims 2^31 rows allocates no memory for them", "[data]") {
  const idx_pair labels(idx_images(5, 2), idx_labels(five_labels, 1U << 31));
  CHECK_THAT(error_text(labels.read()),
             ContainsSubstring("labels: byte 4: error: the header states 2147483648 rows of 1 bytes"));
  const idx_pair images(idx_images(5, 2, 1U << 31), idx_labels(five_labels));
  CHECK_THAT(
      error_text(images.read()),
      ContainsSubstring("images: byte 4: error: the header states 2147483648 rows of 4 bytes, 8589934608 bytes in "
                        "all, but the file holds at most 36"));
  const scratch_folder folder;
  write_file(folder.path() / "labels.gz", gzipped(idx_labels(five_labels, 1U << 31)));
  CHECK_THAT(error_text(read_idx_labels(folder.path() / "labels.gz", 3)),
             ContainsSubstring("labels.gz: unpacked byte 4"));
}

TEST_CASE("an idx file without rows is refused", "[data]") {
  const idx_pair files(idx_images(0, 2), idx_labels(""));
  CHECK_THAT(error_text(files.read()), ContainsSubstring("labels: byte 4: error: the header states 0 rows"));
}

TEST_CASE("a truncated label file is refused by name", "[data]") {
  const idx_pair files(idx_images(5, 2), idx_labels(five_labels).substr(0, 11));
  CHECK_THAT(error_text(files.read()), ContainsSubstring("/labels: byte 4: error") && ContainsSubstring("truncated"));
  const idx_pair no_header(idx_images(5, 2), idx_labels(five_labels).substr(0, 6));
  CHECK_THAT(error_text(no_header.read()),
             ContainsSubstring("/labels: byte 6: error: the content ends here, 2 bytes too early"));
}

TEST_CASE("truncated images, packed or not, and images with trailing bytes are refused", "[data]") {
  const auto whole = idx_images(5, 2);
  const idx_pair truncated(whole.substr(0, whole.size() - 1), idx_labels(five_labels));
  CHECK_THAT(error_text(truncated.read()),
             ContainsSubstring("/images: byte 4: error") && ContainsSubstring("truncated"));
  CHECK_THAT(error_text(idx_pair(whole + "x", idx_labels(five_labels)).read()),
             ContainsSubstring("images: byte 36: error"));
  const scratch_folder folder;
  write_file(folder.path() / "images.gz", gzipped(whole.substr(0, whole.size() - 1)));
  CHECK_THAT(error_text(read_idx_images(folder.path() / "images.gz", tiny, 5, 5)),
             ContainsSubstring("unpacked byte 35: error"));
  write_file(folder.path() / "images.gz", gzipped(whole + "x"));
  CHECK_THAT(error_text(read_idx_images(folder.path() / "images.gz", tiny, 5, 5)),
             ContainsSubstring("unpacked byte 36: error"));
}

TEST_CASE("a label out of range is refused with its row", "[data]") {
  const idx_pair files(idx_images(5, 2), idx_labels(std::string("\0\1\3\0\1", 5)));
  CHECK_THAT(error_text(files.read()),
             ContainsSubstring("labels: byte 10: error: row 2 has label 3, but this data set has labels 0 to 2"));
}
