#include "runtime/data/files.hpp"
#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using std::filesystem::path;

namespace {

const file_set wanted{.data_set = "mnist",
                      .folders = {"mnist", "MNIST/raw"},
                      .names = {{"images-idx3", "images.idx3"}, {"labels-idx1"}},
                      .remedy = "`tools/fetch_data mnist` downloads them."};

void put(const path& file) {
  std::filesystem::create_directories(file.parent_path());
  write_file(file, "x");
}

} // namespace

TEST_CASE("files are found in the first folder that has all of them", "[data]") {
  const scratch_folder a, b;
  put(a.path() / "mnist/images-idx3.gz"); // without the labels
  put(b.path() / "MNIST/raw/images.idx3");
  put(b.path() / "MNIST/raw/labels-idx1.xz");
  const auto files = find_files(wanted, {}, {a.path(), b.path()});
  REQUIRE(error_text(files) == "");
  CHECK(*files == std::vector<path>{b.path() / "MNIST/raw/images.idx3", b.path() / "MNIST/raw/labels-idx1.xz"});
  put(a.path() / "mnist/labels-idx1");
  CHECK(find_files(wanted, {}, {a.path(), b.path()})->front() == a.path() / "mnist/images-idx3.gz");
}

TEST_CASE("a root itself is searched only if its name or the scenario identifies the data set", "[data]") {
  const scratch_folder a;
  for (const char* folder : {"mnist", "fashion-mnist", "MNIST/raw"})
    for (const char* file : {"images-idx3", "labels-idx1"})
      put(a.path() / folder / file);
  CHECK(find_files(wanted, {}, {a.path() / "mnist"}));
  CHECK(find_files(wanted, {}, {a.path() / "mnist/"}));
  CHECK(find_files(wanted, {}, {a.path() / "MNIST/raw"}));
  CHECK_FALSE(find_files(wanted, {}, {a.path() / "fashion-mnist"}));
  const data_section data{.root = a.path() / "fashion-mnist"};
  CHECK(find_files(wanted, data, {data.root}));
}

TEST_CASE("the error of missing files lists folders, names and the remedy", "[data]") {
  const scratch_folder a;
  put(a.path() / "mnist/images-idx3");
  const auto text = error_text(find_files(wanted, {}, {a.path(), "/nowhere"}));
  CHECK_THAT(text, ContainsSubstring("data set 'mnist': error: the files were not found."));
  CHECK_THAT(text, ContainsSubstring("Searched: " + (a.path() / "mnist").string() + ", " +
                                     (a.path() / "MNIST/raw").string() + ", /nowhere/mnist, /nowhere/MNIST/raw."));
  CHECK_THAT(text,
             ContainsSubstring("Looked for: images-idx3 or images.idx3, labels-idx1 (each also with .gz or .xz)."));
  CHECK_THAT(text, ContainsSubstring((a.path() / "mnist").string() + " has only some of them; it lacks labels-idx1."));
  CHECK_THAT(text, ContainsSubstring("`tools/fetch_data mnist` downloads them."));
}
