#include "runtime/models/function.hpp"
#include "runtime/storage/parameters.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two layers without computations: 2 inputs, 3 hidden units, 2 classes; P = 17.
class small_net final : public model {
public:
  const std::vector<parameter>& layout() const noexcept override { return layout_; }
  std::int64_t feature_width() const noexcept override { return 3; }
  std::int64_t classes() const noexcept override { return 2; }
  std::string identity() const override { return "small"; }
  std::int64_t working_set(std::int64_t) const override { return 0; }
  activations forward(const at::Tensor&, const at::Tensor&, class_range, tape*, const training_mode*) const override {
    return {};
  }
  void backward(const at::Tensor&, tape&, class_range, const at::Tensor&, const at::Tensor&, const parameter_choice&,
                const gradient_sink&) const override {}
  function_results differentiable(const at::Tensor&, const at::Tensor&, class_range,
                                  const function_mode&) const override {
    return {};
  }

private:
  std::vector<parameter> layout_{{.name = "fc1.weight", .shape = {3, 2}, .offset = 0, .size = 6},
                                 {.name = "fc1.bias", .shape = {3}, .offset = 6, .size = 3},
                                 {.name = "fc2.weight", .shape = {2, 3}, .offset = 9, .size = 6, .head = true},
                                 {.name = "fc2.bias", .shape = {2}, .offset = 15, .size = 2, .head = true}};
};

const small_net net;
const at::Tensor counted = at::arange(17, at::kFloat); // [P]

/// Parameters of `counted` except the given ones.
tensor_map without(std::initializer_list<std::string_view> names) {
  tensor_map result;
  for (const auto& [name, value] : named_parameters(net, counted))
    if (std::find(names.begin(), names.end(), name) == names.end())
      result.put(name, value);
  return result;
}

tensor_map with(tensor_map map, const char* name, at::Tensor value) {
  map.put(name, std::move(value));
  return map;
}

std::string only_finding(const tensor_map& named, const at::Tensor* head_from = nullptr) {
  const auto flat = flat_parameters(net, named, "net.safetensors", head_from);
  REQUIRE_FALSE(flat);
  REQUIRE(flat.error().size() == 1);
  CHECK(flat.error()[0].where == "net.safetensors");
  return flat.error()[0].text;
}

} // namespace

TEST_CASE("named_parameters() and flat_parameters() are inverse to each other") {
  const auto named = named_parameters(net, counted);
  CHECK(named.size() == 4);
  CHECK(at::equal(named.at("fc1.weight"), at::arange(6, at::kFloat).view({3, 2})));
  CHECK(at::equal(named.at("fc2.bias"), at::arange(15, 17, at::kFloat)));
  const auto flat = flat_parameters(net, named, "", nullptr);
  REQUIRE(flat);
  CHECK(at::equal(*flat, counted));
}

TEST_CASE("half-precision weights are converted to float32") {
  const auto named = with(without({"fc1.bias"}), "fc1.bias", at::arange(6, 9, at::kFloat).to(at::kBFloat16));
  const auto flat = flat_parameters(net, named, "", nullptr);
  REQUIRE(flat);
  CHECK(flat->scalar_type() == at::kFloat);
  CHECK(at::equal(*flat, counted));
}

TEST_CASE("missing, additional and misshapen tensors are reported together") {
  CHECK_THAT(only_finding(without({"fc1.bias"})), ContainsSubstring("'fc1.bias' of shape [3] is missing"));
  CHECK_THAT(only_finding(without({"fc2.weight"})), ContainsSubstring("'fc2.weight'"));
  CHECK_THAT(only_finding(with(without({}), "bn1.weight", at::ones({3}))), ContainsSubstring("'bn1.weight'"));
  CHECK_THAT(only_finding(with(without({}), "fc1.weight", at::ones({2, 3}))),
             ContainsSubstring("'fc1.weight' has shape [2, 3], but the model needs [3, 2]"));
  const auto many = flat_parameters(net, with(without({"fc1.bias", "fc1.weight"}), "x", at::ones({1})), "f", nullptr);
  REQUIRE_FALSE(many);
  CHECK(many.error().size() == 3);
}

TEST_CASE("adapters are also read under the names of the official code") {
  const auto vit =
      net_of("vit", {3, 8, 8}, 5, {{"patch", "4"}, {"width", "20"}, {"depth", "1"}, {"heads", "2"}, {"adapter", "3"}});
  const auto flat = initial_weights(*vit, 3) + 0.5;
  tensor_map theirs;
  for (const auto& [name, value] : named_parameters(*vit, flat)) {
    const auto at = name.find(".adapter.");
    theirs.put(at == std::string::npos
                   ? name
                   : name.substr(0, at) +
                         (name.find(".down.") != std::string::npos ? ".adaptmlp.down_proj." : ".adaptmlp.up_proj.") +
                         name.substr(name.rfind('.') + 1),
               value);
  }
  REQUIRE(theirs.find("blocks.0.adaptmlp.down_proj.weight"));
  const auto read = flat_parameters(*vit, theirs, "vit.safetensors", nullptr);
  REQUIRE(read);
  CHECK(at::equal(*read, flat));
  theirs.put("blocks.0.adapter.up.bias", at::zeros({20}));
  const auto twice = flat_parameters(*vit, theirs, "vit.safetensors", nullptr);
  REQUIRE_FALSE(twice);
  CHECK_THAT(twice.error()[0].text, ContainsSubstring("'blocks.0.adapter.up.bias' occurs a second time"));
}

TEST_CASE("integer weights, and NaN or infinite ones, are refused") {
  CHECK_THAT(only_finding(with(without({}), "fc1.bias", at::ones({3}, at::kLong))),
             ContainsSubstring("'fc1.bias' is Long"));
  CHECK_THAT(only_finding(with(without({}), "fc1.bias", at::full({3}, NAN))), ContainsSubstring("not finite"));
}

TEST_CASE("a missing head, or one for other classes, is replaced as a whole") {
  const auto head_from = at::full({17}, -1.0f); // [P]
  const auto expected_flat = at::cat({counted.slice(0, 0, 9), head_from.slice(0, 9, 17)});
  for (const auto& named : {without({"fc2.weight", "fc2.bias"}), without({"fc2.bias"}),
                            with(without({}), "fc2.weight", at::ones({1000, 3}))}) {
    const auto flat = flat_parameters(net, named, "", &head_from);
    REQUIRE(flat);
    CHECK(at::equal(*flat, expected_flat));
  }
  const auto own = flat_parameters(net, without({}), "", &head_from);
  REQUIRE(own);
  CHECK(at::equal(*own, counted));
}

TEST_CASE("only the head may be replaced") {
  const auto head_from = at::zeros({17});
  CHECK_THAT(only_finding(without({"fc1.bias", "fc2.weight", "fc2.bias"}), &head_from),
             ContainsSubstring("'fc1.bias'"));
  CHECK_THAT(only_finding(with(without({}), "extra", at::ones({1})), &head_from), ContainsSubstring("'extra'"));
}

TEST_CASE("written tensors have PyTorch's layout, although filters are permuted in memory") {
  const auto cnn = net_of("cnn", {3, 8, 8}, 4); // conv2 gives 64 x 4 x 4, the pooling 64 x 2 x 2
  const auto flat = at::arange(cnn->size(), at::kFloat);
  const auto named = named_parameters(*cnn, flat);
  const auto offset_of = [&](const char* name) {
    for (const auto& parameter : cnn->layout())
      if (parameter.name == name)
        return parameter.offset;
    return std::int64_t{-1};
  };
  const auto& filters = named.at("conv1.weight"); // [out, in, h, w], in memory [h, w, in, out]
  REQUIRE(filters.sizes() == at::IntArrayRef{32, 3, 3, 3});
  CHECK(filters.is_contiguous());
  CHECK(filters[5][2][1][0].item<float>() == static_cast<float>(((1 * 3 + 0) * 3 + 2) * 32 + 5));
  const auto& rows = named.at("fc1.weight"); // [out, c * h * w], in memory [out, h, w, c]
  REQUIRE(rows.sizes() == at::IntArrayRef{128, 256});
  const auto place = offset_of("fc1.weight") + 7 * 256 + (1 * 2 + 0) * 64 + 9;
  CHECK(rows[7][9 * 4 + 1 * 2 + 0].item<float>() == static_cast<float>(place));
  CHECK(named.at("fc2.weight")[3][5].item<float>() == static_cast<float>(offset_of("fc2.weight") + 3 * 128 + 5));
}

TEST_CASE("a file of every model reads back bitwise equal") {
  const scratch_folder folder;
  const model_keys groups{{"norm", "group"}}, convolutions{{"shortcut", "conv1x1"}};
  const std::vector<model_ref> nets{net_of("cnn", {3, 9, 8}, 4), net_of("lenet", {1, 28, 28}, 10),
                                    net_of("resnet8", {3, 8, 8}, 5), net_of("resnet32", {3, 8, 8}, 5, convolutions),
                                    net_of("resnet18", {3, 8, 8}, 5, groups)};
  for (const auto& net : nets) {
    INFO(net->identity());
    const auto flat = initial_weights(*net, 3);
    const auto bytes = safetensors_bytes(named_parameters(*net, flat));
    const auto file = folder.path() / "net.safetensors";
    write_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto named = read_safetensors(file);
    REQUIRE(named);
    const auto again = flat_parameters(*net, *named, file.string(), nullptr);
    REQUIRE(again);
    CHECK(same_bits(*again, flat));
  }
}

TEST_CASE("a file of torchvision is read without its batch counters and without its head") {
  const scratch_folder folder;
  const auto resnet = net_of("resnet8", {3, 8, 8}, 5, {{"shortcut", "conv1x1"}});
  const auto flat = initial_weights(*resnet, 3), fresh = initial_weights(*resnet, 4);
  for (const bool absent : {false, true}) {
    auto named = tensor_map{};
    for (const auto& [name, value] : named_parameters(*resnet, flat))
      if (!name.starts_with("fc."))
        named.put(name, value);
    named.put("bn1.num_batches_tracked", at::full({}, 99, at::kLong));
    named.put("layer2.0.downsample.1.num_batches_tracked", at::full({}, 99, at::kLong));
    if (!absent) {
      named.put("fc.weight", at::ones({1000, 64}));
      named.put("fc.bias", at::ones({1000}));
    }
    const auto bytes = safetensors_bytes(named);
    const auto file = folder.path() / "resnet.safetensors";
    write_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto read = read_safetensors(file);
    REQUIRE(read);
    const auto taken = flat_parameters(*resnet, *read, "f", &fresh);
    REQUIRE(taken);
    for (const auto& parameter : resnet->layout()) {
      INFO(parameter.name);
      const auto& expected = parameter.head ? fresh : flat;
      CHECK(same_bits(taken->narrow(0, parameter.offset, parameter.size),
                      expected.narrow(0, parameter.offset, parameter.size)));
    }
  }
}

TEST_CASE("a net without a head ignores only the file's head") {
  const auto whole = net_of("resnet8", {3, 9, 9}, 4);
  auto kind = kind_of("resnet8");
  kind->set_head(head_kind::none);
  const auto headless = kind->build({3, 9, 9}, 4).value();
  const auto flat = initial_weights(*whole, 3), others = initial_weights(*headless, 4);
  const auto named = named_parameters(*whole, flat);
  const auto read = flat_parameters(*headless, named, "net.safetensors", &others);
  REQUIRE(read);
  CHECK(same_bits(named_parameters(*headless, *read).at("layer3.0.conv2.weight"), named.at("layer3.0.conv2.weight")));
  const auto more = flat_parameters(*headless, with(named, "layer4.0.conv1.weight", at::zeros({1})), "x", &others);
  REQUIRE_FALSE(more);
  CHECK_THAT(more.error().front().text,
             ContainsSubstring("'layer4.0.conv1.weight' of shape [1] belongs to no parameter"));
}

TEST_CASE("a head with another name is ignored if the file lacks the net's own head") {
  const auto others = at::arange(17, at::kFloat);
  tensor_map named;
  named.put("fc1.weight", at::full({3, 2}, 5.0F));
  named.put("fc1.bias", at::full({3}, 6.0F));
  for (const auto* const name : {"head.weight", "head.bias"})
    named.put(name, at::zeros({60}));
  const auto read = flat_parameters(net, named, "vit.safetensors", &others);
  REQUIRE(read);
  CHECK(same_bits(read->narrow(0, 9, 8), others.narrow(0, 9, 8)));
  CHECK(read->narrow(0, 0, 6).eq(5.0F).all().item<bool>());

  CHECK_FALSE(flat_parameters(net, with(named, "head.norm.weight", at::zeros({1})), "f", &others));
  CHECK_FALSE(flat_parameters(net, with(named, "tail.weight", at::zeros({1})), "f", &others));
  CHECK_FALSE(flat_parameters(net, named, "f", nullptr)); // a run's own model must have all parameters
  auto whole = named_parameters(net, others);
  CHECK_FALSE(flat_parameters(net, with(whole, "head.weight", at::zeros({1})), "f", &others)); // has two heads
}
