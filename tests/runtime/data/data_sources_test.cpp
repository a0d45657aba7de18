#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data_files.hpp"
#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sets MNEME_DATA during a test.
class data_variable {
public:
  explicit data_variable(const char* value) {
    if (const char* now = std::getenv("MNEME_DATA"))
      before_ = now;
    value ? ::setenv("MNEME_DATA", value, 1) : ::unsetenv("MNEME_DATA");
  }
  data_variable(const data_variable&) = delete;
  data_variable& operator=(const data_variable&) = delete;
  ~data_variable() { before_.empty() ? ::unsetenv("MNEME_DATA") : ::setenv("MNEME_DATA", before_.c_str(), 1); }

private:
  std::string before_{};
};

/// A tiny MNIST: six training images of classes 0 0 1 0 1 2, two test images.
void put_mnist(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "train-images-idx3-ubyte", idx_images(6, 28));
  write_file(folder / "train-labels-idx1-ubyte.gz", gzipped(idx_labels(std::string("\0\0\1\0\1\2", 6))));
  write_file(folder / "t10k-images.idx3-ubyte", idx_images(2, 28));
  write_file(folder / "t10k-labels.idx1-ubyte", idx_labels("\7\x9"));
}

} // namespace

TEST_CASE("the catalog lists its data sets by name", "[data]") {
  std::vector<std::string> names;
  for (const auto& source : data_sources()) {
    names.push_back(source.name);
    CHECK(source.summary.size() > 20);
  }
  CHECK(names == std::vector<std::string>{"arrays",
                                          "cifar10",
                                          "cifar100",
                                          "csv",
                                          "digits",
                                          "emnist-balanced",
                                          "emnist47",
                                          "fashion-mnist",
                                          "folder",
                                          "imagenet-r",
                                          "imagenet-subset",
                                          "mini-imagenet",
                                          "mnist",
                                          "nico-common",
                                          "nico-unique",
                                          "open-image",
                                          "pacs",
                                          "shakespeare",
                                          "shakespeare-roles",
                                          "synthetic",
                                          "tiny-imagenet",
                                          "usps"});
}

TEST_CASE("data.root excludes other folders; otherwise MNEME_DATA precedes the system folders", "[data]") {
  using paths = std::vector<std::filesystem::path>;
  const data_variable variable("/a::b/c:");
  CHECK(data_roots({}) == paths{"/a", "b/c", "/usr/local/share/datasets", "/usr/share/datasets"});
  CHECK(data_roots({.root = "/x"}) == paths{"/x"});
  const data_variable unset(nullptr);
  CHECK(data_roots({}) == paths{"/usr/local/share/datasets", "/usr/share/datasets"});
}

TEST_CASE("an unknown data set is an error that suggests the nearest name", "[data]") {
  CHECK_THAT(
      error_text(load_data({.name = "minst"}, 1)),
      ContainsSubstring(
          "data.name: error: unknown data set 'minst'; expected one of arrays, cifar10, cifar100, csv, digits") &&
          ContainsSubstring("; did you mean mnist?"));
}

TEST_CASE("data are found below MNEME_DATA and limited to the requested rows", "[data]") {
  const scratch_folder folder;
  put_mnist(folder.path() / "MNIST/raw");
  const data_variable variable(folder.path().c_str());
  const auto data = load_data({.name = "mnist"}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.labels == std::vector<std::int32_t>{0, 0, 1, 0, 1, 2});
  CHECK(data->test.labels == std::vector<std::int32_t>{7, 9});
  CHECK(data->classes == 10);
  CHECK(data->mean == std::vector{0.1307});
  CHECK(data->deviation == std::vector{0.3081});
  const auto few = load_data({.name = "mnist", .train_rows = 5, .test_rows = 1, .train_per_class = 1}, 1);
  REQUIRE(error_text(few) == "");
  CHECK(few->train.labels == std::vector<std::int32_t>{0, 1});
  CHECK(few->train.images.select(0, 1).eq(2).all().item<bool>()); // row 2 of the file
  CHECK(few->test.labels == std::vector<std::int32_t>{7});
}

TEST_CASE("the folders of a data set are found without reading its files", "[data]") {
  const scratch_folder folder;
  put_mnist(folder.path() / "MNIST/raw");
  const data_variable variable(folder.path().c_str());
  const auto folders = [](const std::string& name) {
    for (const auto& source : data_sources())
      if (source.name == name)
        return folders_of(source, {});
    return expected<std::vector<std::filesystem::path>>(failed("", "unknown"));
  };
  CHECK(folders("mnist").value() == std::vector{folder.path() / "MNIST/raw"});
  CHECK(folders("synthetic").value().empty());
  CHECK_THAT(error_text(folders("usps")), ContainsSubstring("data set 'usps': error: the files were not found"));
  CHECK_THAT(error_text(folders("digits")), ContainsSubstring("data set 'usps'"));
}

TEST_CASE("broken files of both splits are reported together", "[data]") {
  const scratch_folder folder;
  put_mnist(folder.path() / "mnist");
  write_file(folder.path() / "mnist/train-images-idx3-ubyte", "");
  write_file(folder.path() / "mnist/t10k-labels.idx1-ubyte", idx_labels("\7\xA"));
  const auto broken = load_data({.name = "mnist", .root = folder.path()}, 1);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().size() == 2);
  CHECK_THAT(error_text(broken),
             ContainsSubstring("mnist/train-images-idx3-ubyte: byte 0: error: the file is empty") &&
                 ContainsSubstring("mnist/t10k-labels.idx1-ubyte: byte 9: error: row 1 has label 10"));
}

TEST_CASE("the error of a missing data set explains how to obtain it", "[data]") {
  const scratch_folder empty;
  for (const auto& source : data_sources()) {
    if (source.name == "synthetic" || source.is_own) // tested by own_data_test.cpp
      continue;
    INFO(source.name);
    const auto missing = error_text(load_data({.name = source.name, .root = empty.path()}, 1));
    CHECK_THAT(missing, ContainsSubstring("the files were not found. Searched: " + empty.path().string()));
    const std::set<std::string> fetched{"cifar10", "cifar100", "emnist-balanced", "fashion-mnist",
                                        "mnist",   "usps",     "tiny-imagenet"};
    if (fetched.contains(source.name))
      CHECK_THAT(missing, ContainsSubstring("`tools/fetch_data " + source.name + "`"));
  }
  const auto digits = error_text(load_data({.name = "digits", .root = empty.path()}, 1)); // both parts together
  CHECK_THAT(digits, ContainsSubstring("data set 'mnist': error:") && ContainsSubstring("data set 'usps': error:"));
}
