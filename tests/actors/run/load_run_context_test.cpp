// Errors that only data or model reveal are reported before a run writes anything.
#include "runtime/base/available_memory.hpp"
#include "tests/support/run.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// All errors of `toml`, one per line, without the folder of the scenario.
std::string refused(const std::string& toml) {
  const scratch_folder folder;
  const auto file = folder.path() / "test.toml";
  std::ofstream(file) << toml;
  const auto read = read_scenario(file, {});
  REQUIRE(read);
  std::string text;
  for (const auto& diagnostic : check_against_data(read->value))
    text += diagnostic_text(diagnostic) + "\n";
  const auto place = text.find(folder.path().string());
  return place == std::string::npos ? text : text.erase(place, folder.path().string().size() + 1);
}

const std::string few_rows = "[data]\nname = \"synthetic\"\nrows = 30\nshape = [4]\n[tasks]\nkind = \"single\"\n"
                             "[strategy]\nname = \"fedavg\"\n";

} // namespace

TEST_CASE("a valid scenario is accepted") { CHECK(refused(few_rows).empty()); }

TEST_CASE("averaging a model without parameters is rejected at model.name") {
  CHECK(refused(few_rows + "[model]\nname = \"identity\"\n") ==
        "test.toml:10:8: error: fedavg: 'identity 4' has no head, so there is nothing to train and to average; every "
        "other model has one\n");
}

TEST_CASE("a model that cannot read the images is rejected at model.name") {
  const auto error_text = refused(few_rows + "[model]\nname = \"lenet\"\n");
  CHECK(error_text.starts_with("test.toml:10:8: error: "));
}

TEST_CASE("a net that exceeds the memory is rejected at model.name before its weights are drawn") {
  if (available_memory().bytes >> 30 > 200)
    SKIP("all of it would fit");
  CHECK(refused(few_rows + "[model]\nname = \"mlp\"\nhidden = [65536, 65536, 65536, 65536, 65536, 65536]\n")
            .starts_with("test.toml:10:8: error: a net of 21476147210 weights needs about 240 GiB, but only "));
}

TEST_CASE("token nets reject image rows, and image nets reject token rows") {
  const std::string text = "[data]\nname = \"synthetic\"\nrows = 30\nshape = [4]\ntokens = 9\n[tasks]\nkind = "
                           "\"single\"\n[strategy]\nname = \"fedavg\"\n";
  CHECK(refused(text + "[model]\nname = \"lstm\"\n").empty());
  CHECK(refused(text + "[model]\nname = \"mlp\"\n") ==
        "test.toml:11:8: error: \"mlp\" reads images, and the data are rows of tokens; expected a net that reads "
        "tokens, as \"lstm\"\n");
  CHECK(refused(few_rows + "[model]\nname = \"lstm\"\n") ==
        "test.toml:10:8: error: \"lstm\" reads rows of tokens, and data.name = \"synthetic\" has images; expected "
        "data of tokens or another net\n");
  CHECK(refused(text + "[model]\nname = \"lstm\"\nvocabulary = 8\n") ==
        "test.toml:12:14: error: lstm has a vocabulary of 8 tokens, but the data set has 9; expected a "
        "model.vocabulary of at least that, or 0 for the data set's\n");
}

TEST_CASE("an error of building the net is located at the first key that it names and the file sets") {
  const std::string images = "[data]\nname = \"synthetic\"\nrows = 30\nshape = [1, 9, 9]\n[tasks]\nkind = \"single\"\n"
                             "[strategy]\nname = \"fed-codap\"\n[model]\nweights = \"as-drawn\"\n";
  CHECK(
      refused(images + "depth = 6\npatch = 4\n")
          .starts_with("test.toml:12:9: error: vit cannot cut images of 9 x 9 pixels into patches of 4; model.patch "));
  CHECK(refused(images + "patch = 3\nhead_hidden = [4]\n") ==
        "test.toml:12:15: error: a vit with prompts ends with one linear layer; expected no model.head_hidden\n");
  CHECK(refused(images + "patch = 4\nimage = 9\n").starts_with("test.toml:11:9: error: vit cannot cut"));
}

TEST_CASE("a task without synthetic rows is rejected at data.rows or at the limit that leaves none") {
  const std::string two = "[data]\nname = \"synthetic\"\nrows = 2\n[tasks]\ncount = 2\n[strategy]\nname = \"fedavg\"\n";
  CHECK(refused(two).starts_with("test.toml:3:8: error: task 2 has no train rows; expected some: raise data.rows\n"));
  CHECK(refused("[data]\nname = \"synthetic\"\ntrain_rows = 2\nrows = 900\n[strategy]\nname = \"fedavg\"\n")
            .starts_with(
                "test.toml:3:14: error: task 2 has no train rows; expected some: raise data.train_rows or set "));
}

TEST_CASE("a partition that the rows do not allow is rejected") {
  const auto error_text = refused(few_rows + "[partition]\nkind = \"dirichlet-capped\"\n[clients]\ncount = 40\n");
  CHECK(error_text.starts_with("test.toml:"));
  CHECK(error_text.find("40") != std::string::npos);
}
