/// small_nets: small nets and rows computed from names, as in tools/research/official/small_nets.py.
#pragma once
#include "tests/support/learning.hpp"
#include "tests/support/official_steps.hpp"
namespace mneme::test::small_nets {

constexpr std::int64_t side = 16;

inline model_ref net(std::int64_t classes) { return net_of("resnet8", {3, side, side}, classes); }

/// Parameters and running statistics computed from names.
inline at::Tensor weights(const model& net, const std::string& prefix) {
  auto flat = at::empty({net.size()});
  for (const auto& entry : net.layout())
    put_as_in_files(flat, entry, made_values(prefix + entry.name, entry.shape));
  return flat;
}

/// Rows of images computed from names, batch by batch. @param batches names, and labels of their rows
inline std::shared_ptr<dataset> rows(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& batches) {
  auto source = std::make_shared<dataset>();
  std::vector<at::Tensor> images;
  for (const auto& [name, labels] : batches) {
    const auto values = formula(name, std::ssize(labels) * 3 * side * side);
    images.push_back(((at::tensor(values) + 1) * 127.5).to(at::kByte).view({std::ssize(labels), 3, side, side}));
    for (const auto label : labels)
      source->labels.push_back(static_cast<std::int32_t>(label));
  }
  source->images = at::cat(images);
  source->transforms.resize(1);
  source->scale = std::vector<float>(3, 2.0F / 255.0F);
  source->shift = std::vector<float>(3, -1.0F);
  return source;
}

/// Compares everything in the script's record, and checks that the record has no other names.
inline void compare(official_steps& both, const std::string& where, const model& net, const at::Tensor& flat,
                    const nlohmann::json& expected, double bound) {
  std::size_t known = 0;
  for (const auto& entry : net.layout())
    if (const auto record = expected.find(entry.name); record != expected.end()) {
      both.weights(where + entry.name, entry.name, as_in_files(flat, entry), *record, bound);
      ++known;
    }
  CHECK(known == expected.size());
}

} // namespace mneme::test::small_nets
