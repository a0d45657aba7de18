// Facts about the real files, computed with Python alone (d = lzma.open(FILE).read(), records of 3074 bytes):
//   all pixels: sum(d) - sum(d[0::3074]) - sum(d[1::3074])
//   plane k of the first 100 records: sum(sum(d[i*3074+2+k*1024:i*3074+2+(k+1)*1024]) for i in range(100))
#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include "tests/support/data_files.hpp"
#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

using labels = std::vector<std::int32_t>;

std::vector<std::int64_t> plane_sums(const at::Tensor& images) { // [N, 3, H, W]
  std::vector<std::int64_t> sums;
  for (int plane = 0; plane < 3; ++plane)
    sums.push_back(images.select(1, plane).sum().item<std::int64_t>());
  return sums;
}

void put_cifar10(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (int batch = 1; batch <= 5; ++batch)
    write_file(folder / ("data_batch_" + std::to_string(batch) + ".bin"),
               record(std::string(1, static_cast<char>(batch)), 10 * batch) + record("\x9", 10 * batch + 1));
  write_file(folder / "test_batch.bin.xz", xzipped(record("\x8", 99)));
}

/// Record whose planes R, G and B have the values pixel, pixel + 1 and pixel + 2.
std::string colored(const std::string& before, int pixel) {
  auto bytes = before;
  for (int plane = 0; plane < 3; ++plane)
    bytes += std::string(1024, static_cast<char>(pixel + plane));
  return bytes;
}

/// PACS with `rows` records of each domain and class in turn. Record n of a domain has pixels of value n.
void put_pacs(const std::filesystem::path& folder, int rows) {
  std::filesystem::create_directories(folder);
  std::string content;
  for (char domain = 0; domain < 4; ++domain)
    for (int row = 0; row < 7 * rows; ++row)
      content += record({domain, static_cast<char>(row % 7)}, row);
  write_file(folder / "pacs32.bin.xz", xzipped(content));
}

} // namespace

TEST_CASE("CIFAR-10 has five training files in order, and a test file", "[data]") {
  const scratch_folder root;
  put_cifar10(root.path() / "cifar-10-batches-bin");
  const auto data = load_data({.name = "cifar10", .root = root.path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.labels == labels{1, 9, 2, 9, 3, 9, 4, 9, 5, 9});
  CHECK(data->train.images.select(0, 7).eq(41).all().item<bool>());
  CHECK(data->test.labels == labels{8});
  CHECK(data->mean == std::vector{0.4914, 0.4822, 0.4465});
  CHECK(data->deviation == std::vector{0.2470, 0.2435, 0.2616});
  CHECK(load_data({.name = "cifar10", .root = root.path(), .train_rows = 3}, 1)->train.labels == labels{1, 9, 2});
  std::filesystem::remove(root.path() / "cifar-10-batches-bin/data_batch_4.bin");
  CHECK_THAT(
      error_text(load_data({.name = "cifar10", .root = root.path()}, 1)),
      Catch::Matchers::ContainsSubstring("cifar-10-batches-bin has only some of them; it lacks data_batch_4.bin"));
}

TEST_CASE("a record of CIFAR-100 has a coarse label, a fine label and planes R, G, B", "[data]") {
  const scratch_folder root;
  std::filesystem::create_directories(root.path() / "cifar-100-binary");
  write_file(root.path() / "cifar-100-binary/train.bin.xz", xzipped(colored("\x13\x63", 10) + colored("\x2\x3", 50)));
  write_file(root.path() / "cifar-100-binary/test.bin", colored("\x1\x2A", 90));
  const auto data = load_data({.name = "cifar100", .root = root.path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.labels == labels{99, 3});
  CHECK(data->test.labels == labels{42});
  CHECK(plane_sums(data->train.images) == std::vector<std::int64_t>{1024 * 60, 1024 * 62, 1024 * 64});
  CHECK(data->test.images.sizes() == at::IntArrayRef{1, 3, 32, 32});
}

TEST_CASE("CIFAR-100 has fine labels, and planes R, G, B", "[data]") {
  MNEME_NEEDS_DATA(folder, "cifar-100-binary");
  const auto data =
      load_data({.name = "cifar100", .root = folder.parent_path(), .train_rows = 100, .test_rows = 100}, 1);
  REQUIRE(error_text(data) == "");
  for (std::int32_t row = 0; row < 100; ++row) // coarse labels would begin with 4, 1, 14
    CHECK(data->train.labels[static_cast<std::size_t>(row)] == row);
  CHECK(plane_sums(data->train.images) == std::vector<std::int64_t>{14'048'108, 13'596'228, 12'453'267});
  CHECK(plane_sums(data->test.images) == std::vector<std::int64_t>{13'760'377, 13'181'642, 12'163'618});
  CHECK(data->classes == 100);
  CHECK(data->mean == std::vector{0.5071, 0.4867, 0.4408});
  CHECK(data->deviation == std::vector{0.2675, 0.2565, 0.2761});
}

TEST_CASE("CIFAR-100 has the published rows", "[data][slow]") {
  MNEME_NEEDS_DATA(folder, "cifar-100-binary");
  const auto data = load_data({.name = "cifar100", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.images.sizes() == at::IntArrayRef{50'000, 3, 32, 32});
  CHECK(data->train.images.sum().item<std::int64_t>() == 18'729'378'732);
  CHECK(std::count(data->train.labels.begin(), data->train.labels.end(), 41) == 500);
  CHECK(data->test.images.sizes() == at::IntArrayRef{10'000, 3, 32, 32});
  CHECK(data->test.images.sum().item<std::int64_t>() == 3'755'249'331);
}

// seen = Counter(); test = [(i, k) for i in range(9991) for k in [tuple(d[i*3074:i*3074+2])]
//                           for n in [seen[k]] if not seen.update([k]) and n % 5 == 4]
TEST_CASE("the test set of PACS is every fifth record of each domain and class", "[data]") {
  MNEME_NEEDS_DATA(folder, "pacs-32");
  const auto data = load_data({.name = "pacs", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.size() == 8'003);
  CHECK(data->test.size() == 1'988);
  CHECK(data->train.images.sum().item<std::int64_t>() == 4'644'156'952);
  CHECK(data->test.images.sum().item<std::int64_t>() == 1'144'296'651);
  CHECK(labels(data->test.labels.begin(), data->test.labels.begin() + 5) == labels{1, 3, 6, 4, 5});
  for (const auto& [domain, rows] : {std::pair{0, 331}, {1, 407}, {2, 466}, {3, 784}})
    CHECK(std::count(data->test.domains.begin(), data->test.domains.end(), domain) == rows);
  CHECK(data->domain_names == std::vector<std::string>{"photo", "art_painting", "cartoon", "sketch"});
  CHECK(data->classes == 7);
}

TEST_CASE("limits of PACS apply per domain, whose test rows are the fifth records of each class", "[data]") {
  const scratch_folder root;
  put_pacs(root.path() / "pacs-32", 6);
  const auto whole = load_data({.name = "pacs", .root = root.path()}, 1);
  REQUIRE(error_text(whole) == "");
  CHECK(whole->train.size() == 4 * 7 * 5);
  CHECK(whole->test.size() == 4 * 7);
  CHECK(labels(whole->test.labels.begin(), whole->test.labels.begin() + 8) == labels{0, 1, 2, 3, 4, 5, 6, 0});
  for (std::int64_t row = 0; row < 28; ++row) // records 28 to 34 of each domain
    CHECK(whole->test.images[row].eq(28 + row % 7).all().item<bool>());
  const auto cut = load_data({.name = "pacs", .root = root.path(), .test_rows = 5, .train_per_class = 3}, 1);
  REQUIRE(error_text(cut) == "");
  CHECK(cut->train.size() == 4 * 7 * 3);
  CHECK(cut->test.size() == 4 * 5);
  CHECK(std::count(cut->train.domains.begin(), cut->train.domains.end(), 3) == 21);
}
