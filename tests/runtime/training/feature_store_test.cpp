#include "runtime/training/feature_store.hpp"
#include "runtime/training/inference.hpp"
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

} // namespace

TEST_CASE("features of a frozen net are computed once and then remembered", "[features]") {
  frozen_net frozen;
  feature_store store;
  const auto plain = frozen.features(nullptr, 0, 300);
  CHECK(same_bits(frozen.features(&store, 10, 150), plain.narrow(0, 10, 150).contiguous()));
  CHECK(same_bits(frozen.features(&store, 0, 300), plain)); // some known, some not
  // What is remembered is what is shown: here something else.
  auto& table = store.of(frozen.source, *frozen.net, frozen.weights);
  const std::vector<std::int64_t> row{7};
  table.put(row, at::full({1, 5}, 42.0F));
  CHECK(frozen.features(&store, 7, 1)[0].equal(at::full({5}, 42.0F)));
  CHECK(same_bits(frozen.features(&store, 7, 1, false), plain.narrow(0, 7, 1).contiguous())); // not frozen
  const auto equal_weights = weights_only(frozen.weights->at(flat_weights).clone());
  CHECK(&store.of(frozen.source, *frozen.net, equal_weights) == &table);
  CHECK(&store.of(frozen.source, *frozen.net, weights_only(initial_weights(*frozen.net, 4))) != &table);
}

TEST_CASE("features are kept in a folder between runs, and a damaged file is computed anew", "[features]") {
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
  content[content.size() - 400] = static_cast<char>(content[content.size() - 400] ^ 1); // a bit of a feature
  write_file(file, content);
  feature_store healed(folder.path() / "cache");
  CHECK(same_bits(frozen.features(&healed, 0, 300), plain));
  REQUIRE(healed.damaged().size() == 1);
  CHECK(healed.damaged()[0].where == file.string());
  healed.save();
  feature_store last(folder.path() / "cache");
  CHECK(last.of(frozen.source, *frozen.net, frozen.weights).missing(*rows_from(frozen.source, 0, 300).rows).empty());
}
