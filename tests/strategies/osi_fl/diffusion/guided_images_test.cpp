// The tiny denoiser and decoder, and a whole generation, compared with diffusers
// (tools/research/export/picture_parts_reference.py).
#include "runtime/training/executor.hpp"
#include "tests/support/tiny_parts.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr double bound = 1e-4;

at::Tensor condition_rows() { return formula_tensor("told", {1, 12 * 16}); }
at::Tensor nothing() { return formula_tensor("nothing", {1, 12 * 16}); }
at::Tensor noise() { return formula_tensor("noise", {2, 4, 4, 4}); }

} // namespace

TEST_CASE("the denoiser equals diffusers' U-Net, with a time and a text for each row") {
  const auto rows =
      at::cat({noise().flatten(1), at::tensor({801.0F, 1.0F}).view({2, 1}), at::cat({condition_rows(), nothing()})}, 1);
  const auto found = results_of(part_named("denoiser"), rows.view({2, 1, 1, -1}));
  CHECK(worst_difference(found, recorded(parts_record("generation")["denoised_once"])) < bound);
}

TEST_CASE("a whole generation equals diffusers': times, guidance, DDIM, decoder") {
  const auto record = parts_record("generation");
  for (const auto& line : record["cases"]) {
    const auto steps = line["steps"].get<std::int64_t>();
    CAPTURE(steps);
    const image_diffusion by(tiny_diffusion(), steps, line["guidance"].get<double>());
    CHECK((by.times() == line["times"].get<std::vector<std::int64_t>>()));
    CHECK((by.latent_shape() == std::array<std::int64_t, 3>{4, 4, 4}));
    auto latents = noise();
    for (std::int64_t i = 0; i < steps; ++i)
      latents = by.step(i, latents, condition_rows().expand({2, -1}), nothing().expand({2, -1}));
    CHECK(worst_difference(latents, recorded(line["latents"])) < bound);
    const auto images = by.images(latents);
    CHECK((images.sizes() == at::IntArrayRef{2, 3, 8, 8}));
    CHECK(worst_difference(images, recorded(line["pictures"])) < bound);
  }
}

TEST_CASE("images of a condition have the bits of a separate job, and other noise gives others") {
  const auto captioner = tiny_captioner("text_states");
  const auto by = std::make_shared<const image_diffusion>(tiny_diffusion(), 3, 2.0);
  const auto program = guided_images(by, captioner, {3, 10, 10}, 3);
  const auto device = make_executor("cpu");
  std::vector<job> batch;
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto in = std::make_shared<tensor_map>();
    in->put("condition", formula_tensor(i == 1 ? "other" : "told", {12 * 16}));
    batch.push_back({.id = {{i}}, .request = program_job{.body = program, .in = in, .stream = {.seed = 7 + i / 2}}});
  }
  const auto images_of = [](const outcomes& found, std::size_t i) {
    return std::get<program_output>(std::get<work_output>(found.at(i))).out->at("images");
  };
  const auto found = device->run(batch);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((images_of(found, i).sizes() == at::IntArrayRef{3, 3, 10, 10}));
    CHECK(at::equal(images_of(device->run(std::vector{batch[i]}), 0), images_of(found, i)));
  }
  CHECK_FALSE(at::equal(images_of(found, 0), images_of(found, 1)));
  CHECK_FALSE(at::equal(images_of(found, 0), images_of(found, 2)));
  CHECK_FALSE(at::equal(images_of(found, 0)[0], images_of(found, 0)[1]));
}

TEST_CASE("images with one channel are the brightness of color images") {
  const auto captioner = tiny_captioner("text_states");
  const auto by = std::make_shared<const image_diffusion>(tiny_diffusion(), 2, 1.0);
  const auto made = [&](std::int64_t channels) {
    auto in = std::make_shared<tensor_map>();
    in->put("condition", formula_tensor("told", {12 * 16}));
    const job wanted{.id = {},
                     .request = program_job{.body = guided_images(by, captioner, {channels, 8, 8}, 2), .in = in}};
    const auto found = make_executor("cpu")->run(std::vector{wanted});
    return std::get<program_output>(std::get<work_output>(found.front())).out->at("images").to(at::kFloat);
  };
  const auto color = made(3), gray = made(1);
  const auto expected = 0.299 * color.narrow(1, 0, 1) + 0.587 * color.narrow(1, 1, 1) + 0.114 * color.narrow(1, 2, 1);
  CHECK((gray - expected).abs().max().item<double>() <= 1.0); // both are rounded to integers
}
