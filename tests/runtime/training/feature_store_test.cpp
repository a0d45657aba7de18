#include "runtime/training/feature_store.hpp"
#include "runtime/training/inference.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/device_cases.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/scratch.hpp"
#include <fstream>
using namespace mneme;
using namespace mneme::test;

namespace {

struct frozen_net {
  std::shared_ptr<const dataset> source = drawn_data(300, {1, 1, 12}, 4);
  model_ref net = mlp_of({5}, 12, 4);
  tensors_ref weights = weights_only(initial_weights(*net, 3));
  image_store images{at::Device("cpu")};

  at::Tensor features(feature_store* store, std::int64_t first, std::int64_t count, bool frozen = true) {
    return run_inference(extract_job{.net = net,
                                     .weights = weights,
                                     .samples = rows_from(source, first, count),
                                     .logits = false,
                                     .frozen = frozen},
                         images, store)
        .features;
  }
};

/// Rows with four of 20 tokens.
std::shared_ptr<const dataset> drawn_texts(std::int64_t rows) {
  auto texts = std::make_shared<dataset>();
  texts->vectors = at::empty({rows, 4});
  rng_stream draw({.seed = 7, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < texts->vectors.numel(); ++i)
    texts->vectors.mutable_data_ptr<float>()[i] = static_cast<float>(draw.below(20));
  texts->labels.resize(static_cast<std::size_t>(rows));
  texts->transforms.resize(1);
  return texts;
}

struct net_case {
  model_ref net;
  std::shared_ptr<const dataset> source;
  bool depends; // bits depend on the number of rows, on a CPU
};

/// Nets with every kind of layer, 200 rows each.
std::vector<net_case> nets_of_all_layers() {
  const auto texts_into = [](const std::string& name, const model_keys& keys) {
    auto kind = kind_with(name, keys);
    kind->set_tokens(20);
    return kind->build({1, 1, 4}, 6).value();
  };
  const auto texts = drawn_texts(200);
  const std::shared_ptr<const dataset> images = drawn_data(200, {3, 8, 8}, 6), rows = drawn_data(200, {1, 1, 12}, 6);
  const model_keys vit{{"width", "8"}, {"heads", "2"}, {"depth", "2"}, {"patch", "4"}};
  return {{texts_into("bert", {{"width", "8"}, {"heads", "1"}, {"depth", "2"}}), texts, true},
          {net_of("vit", {3, 8, 8}, 6, vit), images, true},
          {texts_into("lstm", {{"embedding", "4"}, {"hidden", "5"}}), texts, false},
          {net_of("resnet8", {3, 8, 8}, 6), images, true},
          {net_of("cnn", {3, 8, 8}, 6), images, true},
          {mlp_of({5}, 12, 6), rows, false}};
}

/// Checks that cached features have the same bits, requested together or in parts.
void check_parts(const net_case& tried, const at::Device& device) {
  const auto weights = weights_only(initial_weights(*tried.net, 1));
  image_store images(device);
  const auto features = [&](feature_store& store, std::int64_t first, std::int64_t count) {
    const extract_job job{.net = tried.net,
                          .weights = weights,
                          .samples = rows_from(tried.source, first, count),
                          .logits = false,
                          .frozen = true};
    return run_inference(job, images, &store).features.cpu();
  };
  feature_store at_once;
  const auto whole = features(at_once, 0, 200);
  for (const std::int64_t part : {1, 3, 7, 30}) {
    CAPTURE(tried.net->identity(), part);
    feature_store by_parts;
    for (std::int64_t first = 0; first + part <= 200; first += part + 1) // the rows in between come last
      static_cast<void>(features(by_parts, first, part));
    CHECK(same_bits(features(by_parts, 0, 200), whole));
  }
}

} // namespace

TEST_CASE("features of a frozen net are computed once and then cached", "[features]") {
  frozen_net frozen;
  feature_store store;
  const auto plain = frozen.features(nullptr, 0, 300);
  CHECK(same_bits(frozen.features(&store, 10, 150), plain.narrow(0, 10, 150).contiguous()));
  CHECK(same_bits(frozen.features(&store, 0, 300), plain)); // some cached, some not
  // Cached features are returned even if their content was changed.
  auto& table = store.of(frozen.source, *frozen.net, frozen.weights);
  const std::vector<std::int64_t> row{7};
  table.put(row, at::full({1, 5}, 42.0F));
  CHECK(frozen.features(&store, 7, 1)[0].equal(at::full({5}, 42.0F)));
  CHECK(same_bits(frozen.features(&store, 7, 1, false), plain.narrow(0, 7, 1).contiguous())); // not frozen
  const auto equal_weights = weights_only(frozen.weights->at(flat_weights).clone());
  CHECK(&store.of(frozen.source, *frozen.net, equal_weights) == &table);
  CHECK(&store.of(frozen.source, *frozen.net, weights_only(initial_weights(*frozen.net, 4))) != &table);
}

TEST_CASE("cached features have the same bits in any order of requests", "[features]") {
  for (const auto& tried : nets_of_all_layers()) {
    CHECK(tried.net->depends_on_row_count({}) == tried.depends);
    check_parts(tried, at::kCPU);
  }
}

TEST_CASE("cached features on a device have the same bits in any order of requests", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  for (const auto& tried : nets_of_all_layers())
    check_parts(tried, device);
}

TEST_CASE("features are cached in a folder between runs, and a damaged file is recomputed", "[features]") {
  const scratch_folder folder;
  frozen_net frozen;
  const auto plain = frozen.features(nullptr, 0, 300);
  {
    feature_store store(folder.path() / "cache");
    (void)frozen.features(&store, 0, 200);
    const std::vector<std::int64_t> row{7};
    store.of(frozen.source, *frozen.net, frozen.weights).put(row, at::full({1, 5}, 42.0F));
    store.save();
  }
  const auto file = std::filesystem::directory_iterator(folder.path() / "cache")->path();
  {
    feature_store again(folder.path() / "cache");
    CHECK(frozen.features(&again, 7, 1)[0].equal(at::full({5}, 42.0F)));
    CHECK(same_bits(frozen.features(&again, 8, 292), plain.narrow(0, 8, 292).contiguous()));
  }
  auto content = content_of(file);
  content[content.size() - 400] = static_cast<char>(content[content.size() - 400] ^ 1); // flips a bit of a feature
  write_file(file, content);
  feature_store healed(folder.path() / "cache");
  CHECK(same_bits(frozen.features(&healed, 0, 300), plain));
  REQUIRE(healed.damaged().size() == 1);
  CHECK(healed.damaged()[0].where == file.string());
  healed.save();
  feature_store last(folder.path() / "cache");
  CHECK(last.of(frozen.source, *frozen.net, frozen.weights).missing(*rows_from(frozen.source, 0, 300).rows).empty());
}
