#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include "tests/support/data_files.hpp"
#include <algorithm>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("digits contains MNIST's rows, then USPS's, and each domain has its own limits", "[data]") {
  const scratch_folder root;
  const auto put = [&](const std::string& folder, const std::string& prefix, std::uint32_t side,
                       const std::string& classes) {
    std::filesystem::create_directories(root.path() / folder);
    const auto rows = static_cast<std::uint32_t>(classes.size());
    write_file(root.path() / folder / (prefix + "-images-idx3-ubyte"), idx_images(rows, side));
    write_file(root.path() / folder / (prefix + "-labels-idx1-ubyte"), idx_labels(classes));
  };
  put("mnist", "train", 28, "\5\4\1\5");
  put("mnist", "t10k", 28, "\7\7");
  put("usps", "usps-train", 16, "\6\5\6");
  put("usps", "usps-test", 16, "\x9\6\3");
  const auto data = load_data({.name = "digits", .root = root.path(), .train_rows = 3, .test_per_class = 1}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.labels == std::vector<std::int32_t>{5, 4, 1, 6, 5, 6});
  CHECK(data->train.domains == std::vector<std::int32_t>{0, 0, 0, 1, 1, 1});
  CHECK(data->test.labels == std::vector<std::int32_t>{7, 9, 6, 3});
  CHECK(data->train.images.sizes() == at::IntArrayRef{6, 1, 28, 28});
  CHECK(data->train.images[5].eq(2).all().item<bool>()); // USPS's last image, all of whose pixels are equal
  CHECK(data->domain_names == std::vector<std::string>{"mnist", "usps"});
}

// The resized images in exact fractions (im: 256 bytes of one image):
//   def taps(i): c = max(F(2*i+1, 2)*F(16, 28) - F(1, 2), 0); a = int(c); return a, min(a+1, 15), c-a
//   pixel = int((im[ya,xa]*(1-wx) + im[ya,xb]*wx)*(1-wy) + (im[yb,xa]*(1-wx) + im[yb,xb]*wx)*wy + F(1, 2))
TEST_CASE("digits contains MNIST, then USPS at 28x28, as two domains", "[data]") {
  MNEME_NEEDS_DATA(mnist, "mnist");
  MNEME_NEEDS_DATA(usps, "usps");
  REQUIRE(mnist.parent_path() == usps.parent_path());
  const auto data =
      load_data({.name = "digits", .root = mnist.parent_path(), .train_rows = 20, .test_per_class = 10}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.size() == 40); // 20 rows of each domain
  CHECK(data->test.size() == 200);
  CHECK(data->train.images.sizes() == at::IntArrayRef{40, 1, 28, 28});
  CHECK(data->train.domains[19] == 0);
  CHECK(data->train.domains[20] == 1);
  CHECK(data->train.labels[0] == 5);  // MNIST's first
  CHECK(data->train.labels[20] == 6); // USPS's first
  CHECK(data->domain_names == std::vector<std::string>{"mnist", "usps"});
  const auto resized = data->train.images.narrow(0, 20, 20);
  CHECK(resized.sum().item<std::int64_t>() == 960'763);
  const auto row = at::tensor({0, 0, 0, 0, 0, 0, 0, 0, 9, 24, 101, 182, 227, 247, 226, 147, 34, 10}, at::kByte);
  CHECK(resized[0][0][5].narrow(0, 0, 18).equal(row));
}
