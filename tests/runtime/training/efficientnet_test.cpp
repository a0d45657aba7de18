// EfficientNet-Lite0 compared with PyTorch: tools/research/export/efficientnet_reference.py.
#include "runtime/formats/safetensors_file.hpp"
#include "runtime/method/training.hpp"
#include "runtime/storage/parameters.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "runtime/models/depthwise_layer.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/learning.hpp"
#include <cstdlib>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 5;

/// Pixels in [-2, 2), [1, 2, 3, side, side].
at::Tensor images(const std::string& name, std::int64_t side) {
  return (at::tensor(formula(name, 2 * 3 * side * side)) * 2).view({1, 2, 3, side, side});
}

/// The script's weights. The stem's filters get a row and a column of zeros, and variances include the difference
/// between PyTorch's and our epsilon.
at::Tensor made_up(const model& net) {
  auto flat = at::empty({net.size()});
  for (const auto& entry : net.layout()) {
    auto values = at::zeros(entry.shape);
    if (entry.name == "conv_stem.weight")
      values.narrow(2, 1, 3).narrow(3, 1, 3).copy_(made_values(entry.name, {32, 3, 3, 3}));
    else
      values.copy_(made_values(entry.name, entry.shape));
    put_as_in_files(flat, entry, entry.name.ends_with("running_var") ? values + (1e-3 - 1e-5) : values);
  }
  return flat;
}

void check_features(const at::Tensor& features, const nlohmann::json& expected) {
  for (std::int64_t row = 0; row < 2; ++row)
    check_summary("features", features[row], expected[static_cast<std::size_t>(row)], 1e-4);
}

} // namespace

TEST_CASE("EfficientNet-Lite0 has PyTorch's weights, features and scores", "[efficientnet]") {
  const auto golden = golden_record("efficientnet/lite0").at("made_up");
  const auto net = net_of("efficientnet-lite0", {3, 64, 64}, classes);
  CHECK(net->feature_width() == 1280);
  std::int64_t parameters = 0;
  for (const auto& entry : net->layout())
    parameters += entry.buffer || entry.head ? 0 : entry.size;
  CHECK(parameters == 3'371'008 + 32 * 3 * 7); // PyTorch's number without the head, plus the stem's zeros
  const auto flat = made_up(*net).unsqueeze(0), shown = images("made_up", 64);
  const auto passed = net->forward(flat, shown, {0, classes}, nullptr);
  check_features(passed.features[0], golden.at("features"));
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t c = 0; c < classes; ++c)
      CHECK(std::abs(passed.logits[0][row][c].item<double>() -
                     golden.at("scores")[static_cast<std::size_t>(row)][static_cast<std::size_t>(c)].get<double>()) <
            1e-3);
  const auto as_function = net->differentiable(flat, shown, {0, classes}, {});
  check_features(as_function.features[0], golden.at("features"));
}

TEST_CASE("EfficientNet-Lite0 has PyTorch's features with the weights of ImageNet", "[efficientnet]") {
  const auto* const cache = std::getenv("MNEME_CACHE");
  const auto* const home = std::getenv("HOME");
  const auto folder = cache ? std::filesystem::path(cache) : std::filesystem::path(home ? home : "") / ".cache/mneme";
  const auto file = folder / "weights/efficientnet-lite0.safetensors";
  if (!std::filesystem::exists(file))
    SKIP("no " << file << ": tools/fetch_weights efficientnet-lite0 brings it");
  const auto net = net_of("efficientnet-lite0", {3, 224, 224}, 1000);
  const auto named = read_safetensors(file);
  REQUIRE(named);
  const auto flat = flat_parameters(*net, *named, file.string(), nullptr);
  REQUIRE(flat);
  const auto passed = net->forward(flat->unsqueeze(0), images("imagenet", 224), {0, 1000}, nullptr);
  check_features(passed.features[0], golden_record("efficientnet/lite0").at("imagenet").at("features"));
}

TEST_CASE("zero padding is symmetric, or one less before the image than after it", "[efficientnet]") {
  using pair = std::array<std::int64_t, 2>;
  CHECK(depthwise_layer::padding_of(112, 3, 2) == pair{0, 1});
  CHECK(depthwise_layer::padding_of(56, 5, 2) == pair{1, 2});
  CHECK(depthwise_layer::padding_of(14, 5, 1) == pair{2, 2});
  CHECK(depthwise_layer::padding_of(7, 3, 2) == pair{1, 1});
}
