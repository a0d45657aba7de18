// The tiny captioner and text encoder, compared with transformers (tools/research/export/picture_parts_reference.py).
#include "runtime/training/executor.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/tiny_parts.hpp"
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr double bound = 1e-4;

/// Input of the reference, [8, 3, 16, 16] in [-1, 1]; the captioner converts from [0, 1].
at::Tensor pictures() { return formula_tensor("pictures", {8, 3, 16, 16}) * 0.5 + 0.5; }

} // namespace

TEST_CASE("captions equal transformers' word by word for any number of beams") {
  const auto record = parts_record("captions");
  std::set<std::vector<std::int64_t>> different;
  for (const auto& search : record["searches"]) {
    const auto beams = search["beams"].get<std::int64_t>();
    CAPTURE(beams);
    const auto by = tiny_captioner("text_encoder", beams);
    const auto found = by->captions(pictures());
    REQUIRE(found.size() == search["ids"].size());
    CHECK(by->caption_length() == 16);
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto expected = search["ids"][i].get<std::vector<std::int64_t>>();
      const auto end = tiny_words().end();
      auto ours = found[i];
      ours.resize(expected.size(), end); // padded to the longest caption
      CHECK((ours == expected));
      CHECK(by->text(found[i]) == search["texts"][i].get<std::string>());
      different.insert(ours);
    }
  }
  CHECK(different.size() > 5);
}

TEST_CASE("the captioner's encoder equals transformers'") {
  const auto seen = results_of(part_named("caption_encoder"), formula_tensor("pictures", {8, 3, 16, 16}));
  const auto expected = parts_record("captions")["seen"];
  for (std::int64_t i = 0; i < 2; ++i)
    CHECK(worst_difference(seen[i], recorded(expected[static_cast<std::size_t>(i)])) < bound);
}

TEST_CASE("text embeddings equal transformers' CLIPTextModelWithProjection") {
  const auto record = parts_record("texts");
  const auto pooled = tiny_captioner("text_encoder"), states = tiny_captioner("text_states");
  CHECK(pooled->embedding_width() == 24);
  CHECK(states->embedding_width() == 12 * 16);
  for (std::size_t i = 0; i < record["embeddings"].size(); ++i) {
    const auto text = record["tokens"][i]["text"].get<std::string>();
    CAPTURE(text);
    CHECK(worst_difference(pooled->embeddings({text}, at::kCPU), recorded(record["embeddings"][i])) < bound);
    CHECK(worst_difference(states->embeddings({text}, at::kCPU), recorded(record["states"][i])) < bound);
  }
}

TEST_CASE("an image's caption and embedding do not depend on other images of the batch") {
  const auto by = tiny_captioner("text_encoder");
  const auto together = by->embeddings(pictures());
  const auto captions = by->captions(pictures());
  for (std::int64_t i = 0; i < 8; ++i) {
    CHECK((by->captions(pictures().narrow(0, i, 1)).front() == captions[static_cast<std::size_t>(i)]));
    CHECK(same_bits(by->embeddings(pictures().narrow(0, i, 1))[0], together[i]));
  }
}

TEST_CASE("gray images of another size are converted to three channels and the captioner's size") {
  const auto by = tiny_captioner("text_encoder");
  const auto gray = formula_tensor("grey", {2, 1, 8, 12}) * 0.5 + 0.5;
  const auto color = gray.expand({-1, 3, -1, -1}).contiguous();
  CHECK(same_bits(by->embeddings(gray), by->embeddings(color)));
  // Repeating every pixel four times gives a captioner of 16 pixels the inside of an image of 8; uniform images are
  // exact.
  const auto flat = at::full({1, 1, 4, 4}, 0.25);
  CHECK(same_bits(by->embeddings(flat), by->embeddings(at::full({1, 3, 16, 16}, 0.25))));
}

TEST_CASE("class means are means of caption embeddings, for any stack and slices") {
  const auto by = tiny_captioner("text_encoder");
  const shape3 image{3, 16, 16};
  const auto rows = drawn_data(50, image, 4);
  const auto program = encode_class_means(by, {.scale = rows->scale, .shift = rows->shift}, 4);
  const auto device = make_executor("cpu");
  std::vector<job> batch;
  const std::vector<std::pair<std::int64_t, std::int64_t>> parts{{0, 37}, {37, 0}, {40, 10}};
  for (std::uint32_t i = 0; i < parts.size(); ++i)
    batch.push_back(
        {.id = {{i}},
         .request = program_job{.body = program, .samples = rows_from(rows, parts[i].first, parts[i].second)}});
  const auto found = device->run(batch);
  const auto every = by->embeddings(rows->images.to(at::kFloat) / 255.0).to(at::kDouble);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& out = *std::get<program_output>(std::get<work_output>(found[i])).out;
    for (std::int64_t label = 0; label < 4; ++label) {
      auto sum = at::zeros({24}, at::kDouble);
      std::int64_t count = 0;
      for (auto row = parts[i].first; row < parts[i].first + parts[i].second; ++row)
        if (rows->label(row) == label) {
          sum += every[row];
          ++count;
        }
      CHECK(out.at("counts")[label].item<std::int64_t>() == count);
      CHECK(at::allclose(out.at("means")[label].to(at::kDouble), sum / std::max<std::int64_t>(count, 1), 1e-4, 1e-5));
    }
    const auto alone = device->run(std::vector{batch[i]});
    CHECK(same_bits(std::get<program_output>(std::get<work_output>(alone.front())).out->at("means"), out.at("means")));
  }
}
