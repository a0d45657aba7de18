// Facts about the real file, computed with Python alone. Speeches of a (play, speaker) are joined by spaces, every
// tenth speech is used for testing, and there is a row for each character from the 81st on.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/task_stream.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Ten speeches of 100 characters: nine give a training text of 908 characters, the tenth a test text of 100.
std::string make_speeches() {
  std::string file;
  for (int speech = 0; speech < 10; ++speech) {
    std::string text(100, static_cast<char>('a' + speech));
    if (speech == 8)
      text[99] = '$'; // not in the alphabet
    file += "play\tROLE\t" + text + "\n";
  }
  return file;
}

expected<raw_data> read_from(const scratch_folder& root, const std::string& content) {
  std::filesystem::create_directories(root.path() / "shakespeare");
  write_file(root.path() / "shakespeare/speeches.tsv.gz", gzipped(content));
  return load_data({.name = "shakespeare", .root = root.path()}, 1);
}

} // namespace

TEST_CASE("rows are the 80 characters before each target, and classes the targets by frequency") {
  const scratch_folder root;
  const auto data = read_from(root, make_speeches());
  REQUIRE(error_text(data) == "");
  CHECK(data->train.size() == 908 - 80);
  CHECK(data->test.size() == 100 - 80);
  CHECK(data->classes == 80);
  CHECK(data->tokens == 80);
  CHECK(data->train.images.sizes() == at::IntArrayRef{828, 1, 1, 80});
  // Targets: 20 a, then 100 each of b to h, 99 i, 8 spaces between speeches and one dollar sign.
  CHECK(data->train.labels.front() == 8);                        // a is less frequent than b to h and i
  CHECK(data->train.labels[20] == 9);                            // the space after the first speech
  CHECK(data->train.labels[21] == 0);                            // b, the first of equally frequent ones
  CHECK(data->train.labels.back() == 9);                         // the dollar sign
  CHECK(data->test.labels == std::vector<std::int32_t>(20, 62)); // j, which is no target in the training rows
  const auto first = data->train.images.flatten(1);
  CHECK(first[0].eq(53).all().item<bool>()); // a
  CHECK(first[21][79].item<int>() == 1);     // a space
  CHECK(first[21][78].item<int>() == 53);
}

TEST_CASE("row limits apply to the windows of characters as to other data") {
  const scratch_folder root;
  const auto whole = read_from(root, make_speeches());
  const auto cut = load_data({.name = "shakespeare", .root = root.path(), .train_rows = 300, .train_per_class = 5}, 1);
  REQUIRE(error_text(cut) == "");
  CHECK(cut->train.labels.size() == 5 + 3 + 15); // a; spaces; b, c and d
  for (std::size_t i = 0; i < cut->train.labels.size(); ++i) {
    const auto row = cut->train.file_rows[i];
    CHECK(cut->train.labels[i] == whole->train.labels[static_cast<std::size_t>(row)]);
    CHECK(at::equal(cut->train.images[static_cast<std::int64_t>(i)], whole->train.images[row]));
  }
}

TEST_CASE("files without speeches are refused with line or byte") {
  const scratch_folder root;
  CHECK_THAT(error_text(read_from(root, "play\tROLE\ttext\nplay only\n")),
             ContainsSubstring("speeches.tsv.gz:2: error: expected"));
  CHECK_THAT(error_text(read_from(root, "play\tROLE\tshort\n")),
             ContainsSubstring("no role has more than 80 characters"));
  write_file(root.path() / "shakespeare/speeches.tsv.gz", gzipped(make_speeches()).substr(0, 60));
  CHECK_FALSE(load_data({.name = "shakespeare", .root = root.path()}, 1));
}

TEST_CASE("the plays have windows by role, and tasks of six targets") {
  MNEME_NEEDS_DATA(folder, "shakespeare");
  scenario settings;
  settings.data = {.name = "shakespeare", .root = folder.parent_path(), .train_per_class = 40, .test_per_class = 10};
  settings.tasks.count = 9;
  settings.tasks.classes = 54;
  const auto data = load_data(settings.data, 1);
  REQUIRE(error_text(data) == "");
  // "So shaken as we are, so wan with care, Find we a time for frighted peace to pant, And"
  CHECK(data->train.labels[0] == 15); // the comma after "pant"
  CHECK(data->train.labels[1] == 0);
  CHECK(data->train.images.flatten(1)[0][0].item<int>() == 43);  // S
  CHECK(data->train.images.flatten(1)[0][79].item<int>() == 72); // t
  const auto tasks = make_task_stream(settings, *data);
  REQUIRE(tasks);
  CHECK(tasks->classes == 54);
  CHECK(tasks->tasks[0].train.size() == 240);
  CHECK(tasks->tasks[8].test.size() == 60);
}

TEST_CASE("the plays have the published rows", "[slow]") {
  MNEME_NEEDS_DATA(folder, "shakespeare");
  const auto data = load_data({.name = "shakespeare", .root = folder.parent_path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->train.size() == 3'853'057);
  CHECK(data->test.size() == 321'077);
  CHECK(std::count(data->train.labels.begin(), data->train.labels.end(), 0) == 723'387); // spaces
  CHECK(std::count(data->train.labels.begin(), data->train.labels.end(), 1) == 349'572); // e
}

TEST_CASE("shakespeare-roles has rows without overlap, a class per role and a domain per play") {
  const scratch_folder root;
  std::string file = make_speeches() + "play\tSILENT\t" + std::string(200, 'x') + "\n"; // no test speech
  for (int speech = 0; speech < 10; ++speech)
    file += "tale\tROLE\t" + std::string(90, static_cast<char>('k' + speech)) + "\n";
  std::filesystem::create_directories(root.path() / "shakespeare");
  write_file(root.path() / "shakespeare/speeches.tsv.gz", gzipped(file));
  const auto data = load_data({.name = "shakespeare-roles", .root = root.path()}, 1);
  REQUIRE(error_text(data) == "");
  CHECK(data->class_names == std::vector<std::string>{"play ROLE", "tale ROLE"});
  CHECK(data->domain_names == std::vector<std::string>{"play", "tale"});
  CHECK(data->tokens == 80);
  CHECK(data->train.size() == 908 / 80 + 818 / 80); // characters of nine speeches and the spaces between them
  CHECK(data->test.size() == 1 + 1);
  CHECK(std::count(data->train.domains.begin(), data->train.domains.end(), 1) == 10);
  CHECK(data->train.labels == data->train.domains);
  const auto rows = data->train.images.flatten(1);
  CHECK(rows[0].eq(53).all().item<bool>()); // a
  CHECK(rows[1][0].item<int>() == 53);      // the row after it: 20 a, a space, then b
  CHECK(rows[1][20].item<int>() == 1);
  CHECK(rows[1][21].item<int>() == 54);
  const auto cut = load_data({.name = "shakespeare-roles", .root = root.path(), .train_per_class = 3}, 1);
  REQUIRE(cut);
  CHECK(cut->train.size() == 6);
  CHECK(cut->train.file_rows == std::vector<std::int64_t>{0, 1, 2, 11, 12, 13});
}
