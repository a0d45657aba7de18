#include "runtime/base/non_owning.hpp"
#include "runtime/training/folding.hpp"
#include "runtime/training/image_store.hpp"
#include "runtime/training/optimizers.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/device_cases.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/shown_rows.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

/// Result of a group on `device`: five models of `size` weights, of which three take three steps.
at::Tensor stepped(const at::Device& device, const training_options& options, std::int64_t size, std::int64_t pitch) {
  const auto rows_on = [&](std::uint64_t seed) { return drawn_floats({5, pitch}, seed).to(device).narrow(1, 0, size); };
  const auto weights = rows_on(1), gradients = rows_on(2);
  optimizer steps(options, odd_segments(size), weights, gradients);
  for (std::int64_t t = 1; t <= 3; ++t) {
    gradients.copy_(rows_on(static_cast<std::uint64_t>(t) + 2));
    steps.step({1, 3}, std::vector<std::int64_t>{t, 2 * t, t + 5});
  }
  return weights.cpu().contiguous();
}

} // namespace

TEST_CASE("an optimizer on a device takes the steps of the CPU", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
    for (const double extra : {0.0, 1.0})
      for (const std::int64_t size : {1, 4, 64, 101, 100'003})
        for (const auto pitch : {size, (size + 15) / 16 * 16}) {
          const training_options options{.optimizer = kind,
                                         .learning_rate = 0.05,
                                         .momentum = 0.9 * extra,
                                         .weight_decay = 0.01 * extra,
                                         .clip_norm = 1.5 * extra};
          CAPTURE(static_cast<int>(kind), extra, size, pitch);
          const auto ours = stepped(device, options, size, pitch), twin = stepped(at::kCPU, options, size, pitch);
          // Adam divides by roots of moments: of 100,003 gradients one is close to 0 and amplifies rounding errors.
          CHECK(largest_difference(ours, twin) < (kind == optimizer_kind::sgd ? 2e-6 : 5e-3));
          CHECK((ours - twin).abs().mean().item<double>() < 1e-6);
          CHECK(same_bits(ours, stepped(device, options, size, pitch)));
        }
}

TEST_CASE("cross-entropy on a device equals that of the CPU", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  for (const std::int64_t classes : {1, 10, 103}) {
    const auto logits = drawn_floats({3, 7, classes}, 4) * 20;
    auto labels = at::arange(21, at::kLong).remainder(classes).view({3, 7});
    auto weight = at::full({3, 7}, 1.0F / 6.0F);
    labels.select(1, 4).fill_(-1);
    weight.select(1, 4).zero_();
    const auto there = logits.to(device), labels_there = labels.to(device), weight_there = weight.to(device);
    const auto ours = (*cross_entropy_objective())({there, there, labels_there, weight_there, {}}),
               twin = (*cross_entropy_objective())({logits, logits, labels, weight, {}});
    CHECK(largest_difference(ours.d_logits.cpu(), twin.d_logits) < 1e-6);
    CHECK(at::allclose(ours.values.cpu(), twin.values, 1e-5, 1e-6));
  }
}

TEST_CASE("rows gathered on a device equal those of the CPU", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  for (const shape3 shape : {shape3{1, 1, 1}, {1, 1, 64}, {3, 8, 8}, {3, 9, 11}, {3, 32, 32}}) {
    const auto source = std::make_shared<const dataset>(shown_data(shape));
    image_store store(device);
    for (const bool augmented : {false, true}) {
      const auto batch = shown_rows(*source, augmented);
      auto twin = at::empty({std::ssize(batch.rows), shape[0], shape[1], shape[2]}), out = twin.to(device);
      gather(*source, batch.rows, batch.augment, twin.mutable_data_ptr<float>());
      store.gather_into(out, source, batch.rows, batch.augment);
      CAPTURE(shape, augmented);
      CHECK(largest_difference(out.cpu(), twin) < 2e-6);
    }
  }
}

TEST_CASE("a batch does not change while the host packs the next one", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  const auto source = std::make_shared<const dataset>(shown_data({3, 32, 32}));
  image_store store(device);
  std::vector<at::Tensor> batches, again;
  for (auto* round : {&batches, &again})
    for (std::int64_t i = 0; i < 200; ++i) { // the second time one by one
      auto& out = round->emplace_back(at::empty({64, 3, 32, 32}, at::TensorOptions(at::kFloat).device(device)));
      store.gather_into(out, source, std::vector<std::int64_t>(64, i % 100), {});
      if (round == &again)
        out = out.cpu();
    }
  for (std::size_t i = 0; i < batches.size(); ++i)
    CHECK(same_bits(batches[i].cpu(), again[i]));
}

TEST_CASE("a device frees its copy of rows without users", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  image_store store(device);
  const auto gathered = [&] {
    auto source = std::make_shared<const dataset>(shown_data({3, 8, 8}));
    auto out = at::empty({1, 3, 8, 8}, at::TensorOptions(at::kFloat).device(device));
    store.gather_into(out, source, std::vector<std::int64_t>{0}, {});
    return source;
  };
  const auto kept = gathered();
  CHECK(store.copies() == 1);
  auto made = gathered();
  CHECK(store.copies() == 2);
  made.reset();
  store.forget_unused();
  CHECK(store.copies() == 1);
}

TEST_CASE("a device keeps its copy of rows whose handle is not counted", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  auto rows = shown_data({3, 8, 8});
  rows.images = rows.images.clone();
  const auto source = std::make_shared<const dataset>(rows);
  image_store store(device);
  const auto gathered = [&] {
    auto out = at::empty({1, 3, 8, 8}, at::TensorOptions(at::kFloat).device(device));
    store.gather_into(out, non_owning(source), std::vector<std::int64_t>{0}, {});
    return out.cpu();
  };
  const auto first = gathered();
  rows.images.fill_(7); // a second copy would show this change
  CHECK(same_bits(gathered(), first));
  store.forget_unused();
  CHECK(same_bits(gathered(), first));
  CHECK(store.copies() == 1);
}

TEST_CASE("uploads folded on a device give the mean of the CPU", "[gpu]") {
  const device_of_test chosen;
  const auto device = chosen.device();
  for (const std::int64_t size : {1, 7, 1000, 1'000'003})
    for (const std::int64_t offset : {0, 1}) {
      auto sum = at::zeros({size}, at::kDouble), on_device = sum.to(device);
      fold_uploads(sum, drawn_uploads(19, size, offset)); // more than fit one launch
      fold_uploads(on_device, drawn_uploads(19, size, offset, device));
      CHECK(at::equal(on_device.cpu(), sum)); // products of a float and a small integer are exact
      CHECK(largest_difference(take_mean(on_device, 60.0).cpu(), take_mean(sum, 60.0)) < 1e-7);
      CHECK(at::equal(on_device.cpu(), sum)); // both are zeros
    }
}
