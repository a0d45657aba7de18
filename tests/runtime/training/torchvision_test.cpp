// Our models compared with PyTorch's and torchvision's on generated weights:
// tools/research/export/torchvision_reference.py, layers_reference.py and vit_reference.py.
#include "runtime/method/training.hpp"
#include "runtime/storage/parameters.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/golden.hpp"
#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;
using nlohmann::json;

namespace {

/// Pixels in [-2, 2), [1, rows, channels, height, width].
at::Tensor images(const std::string& name, const std::vector<std::int64_t>& shape) {
  auto made = at::empty({1, shape[0], shape[1], shape[2], shape[3]});
  const auto values = formula(name, made.numel());
  for (std::size_t i = 0; i < values.size(); ++i)
    made.mutable_data_ptr<float>()[i] = 2.0F * values[i];
  return made;
}

/// One fixture: our model on images of the size in `part`, with the script's weights.
class fixture {
public:
  fixture(const json& record, const json& part)
      : shape_(part["images"].get<std::vector<std::int64_t>>()), classes_{0, record["classes"]} {
    model_keys keys;
    for (const auto& [key, value] : record["keys"].items())
      keys.emplace_back(key, value);
    net_ = net_of(record["model"], {shape_[1], shape_[2], shape_[3]}, classes_.high, keys);
    tensor_map named;
    for (const auto& parameter : net_->layout())
      named.put(parameter.name, made_values(parameter.name, parameter.shape));
    const auto flat = flat_parameters(*net_, named, record["model"], nullptr);
    REQUIRE(flat);
    weights_ = flat->unsqueeze(0); // [1, P]
  }

  [[nodiscard]] std::int64_t parameters() const {
    std::int64_t total = 0;
    for (const auto& parameter : net_->layout())
      total += parameter.buffer ? 0 : parameter.size;
    return total;
  }

  void check_forward(const json& expected, const training_mode* training, double bound) {
    const auto seen = net_->forward(weights_, images("input", shape_), classes_, nullptr, training);
    double worst = 0.0, largest = 0.0;
    for (std::int64_t row = 0; row < shape_[0]; ++row) {
      const auto i = static_cast<std::size_t>(row);
      check_summary("features", seen.features[0][row], expected["features"][i], bound);
      for (std::int64_t c = 0; c < classes_.high; ++c) {
        const double value = expected["logits"][i][static_cast<std::size_t>(c)];
        largest = std::max(largest, std::abs(value));
        worst = std::max(worst, std::abs(seen.logits[0][row][c].item<double>() - value));
      }
    }
    CHECK(worst <= bound * largest);
  }

  void check_running(const json& expected, double bound) const { check_named(weights_[0], expected, bound); }

  /// Checks gradients of the mean cross-entropy of a training step; a net with dropout is in evaluation mode.
  void check_gradients(const json& expected, double bound) {
    const training_mode mode;
    tape kept;
    const auto seen = net_->forward(weights_, images(expected["input"], shape_), classes_, &kept,
                                    net_->uses_random_numbers() ? nullptr : &mode);
    auto labels = at::empty({1, shape_[0]}, at::kLong);
    for (std::int64_t row = 0; row < shape_[0]; ++row)
      labels.mutable_data_ptr<std::int64_t>()[row] = row * 7 % 10;
    const auto row_weight = at::full({1, shape_[0]}, 1.0F / static_cast<float>(shape_[0]));
    const std::vector<std::shared_ptr<const tensor_map>> auxiliaries(1);
    const auto loss = (*cross_entropy_objective())({.logits = seen.logits,
                                                    .features = seen.features,
                                                    .labels = labels,
                                                    .row_weight = row_weight,
                                                    .auxiliaries = auxiliaries});
    auto gradients = at::zeros_like(weights_);
    net_->backward(weights_, kept, classes_, loss.d_logits, loss.d_features, {}, {gradients});
    check_named(gradients[0], expected["of"], bound);
  }

private:
  /// Tensors of flat values [P] that `expected` names; all of them must exist.
  void check_named(const at::Tensor& flat, const json& expected, double bound) const {
    std::size_t found = 0;
    for (const auto& parameter : net_->layout())
      if (const auto record = expected.find(parameter.name); record != expected.end()) {
        check_summary(parameter.name, as_in_files(flat, parameter), *record, bound);
        ++found;
      }
    CHECK(found == expected.size());
  }

  std::vector<std::int64_t> shape_; // rows, channels, height, width
  class_range classes_;
  model_ref net_;
  at::Tensor weights_;
};

void check(const std::string& name, double gradient_bound = 1e-4, double bound = 1e-5) {
  INFO(name);
  at::set_num_threads(1);
  const auto record = golden_record("torchvision/" + name);
  fixture forward(record, record);
  CHECK(forward.parameters() == record["parameters"]);
  forward.check_forward(record["evaluation"], nullptr, bound);
  const training_mode training;
  if (record.contains("training"))
    forward.check_forward(record["training"], &training, bound);
  forward.check_running(record["running"], bound);
  if (record.contains("gradients"))
    fixture(record, record["gradients"]).check_gradients(record["gradients"], gradient_bound);
}

} // namespace

TEST_CASE("cnn and lenet equal PyTorch's layers", "[models][golden]") {
  check("cnn");
  check("lenet");
}

TEST_CASE("layer lists equal PyTorch's Sequential", "[models][golden]") {
  check("layers_blocks");
  check("layers_flat");
}

TEST_CASE("resnet8 and resnet32 equal nets of torchvision's blocks", "[models][golden]") {
  check("resnet8");
  check("resnet8_conv1x1");
  check("resnet32");
}

TEST_CASE("resnet18 equals torchvision's with both stems and both norms", "[models][golden]") {
  check("resnet18_cifar");
  check("resnet18_imagenet");
  check("resnet18_group");
}

TEST_CASE("resnet50 and resnet152 equal torchvision's", "[models][golden]") {
  check("resnet50", 0.0, 1e-4); // rounding grows with the number of layers
  check("resnet50_group");
  check("resnet152", 0.0, 2e-3);
  check("resnet152_group", 3e-2); // rounding switches a ReLU
}

TEST_CASE("vit equals a vision transformer of PyTorch's layers, with and without adapters", "[models][golden]") {
  for (const auto* const name : {"vit", "vit_resized", "vit_oblong", "vit_adapters"})
    check(name, 1e-5);
}
