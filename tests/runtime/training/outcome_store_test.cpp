// Results of programs with several slices are cached for later runs, by content.
#include "runtime/training/executor.hpp"
#include "runtime/training/outcome_store.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/program_check.hpp"
#include "tests/support/scratch.hpp"
#include <fstream>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Sums its first row, labels and "x" in a given number of slices, and counts the slices.
class counting final : public looped_program {
public:
  explicit counting(std::int64_t slices) : slices_(slices) {}
  inline static std::int64_t ran = 0;
  [[nodiscard]] std::string name() const override { return "counting"; }
  [[nodiscard]] std::string identity() const override { return std::to_string(slices_); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job&) const override {
    return {{.name = "sum", .shape = {1}}};
  }

protected:
  [[nodiscard]] slice_result run_call(const program_call& call) const override {
    ++ran;
    const auto sum = call.in.at("x").sum() + call.images(std::vector<std::int64_t>{0}).sum() + call.labels().sum();
    return {.tensors = {{"sum", sum.to(at::kFloat).view({1})}}, .finished = call.slice + 1 == slices_};
  }

private:
  std::int64_t slices_;
};

struct answer {
  float sum = 0.0F;
  std::int64_t slices = 0;
  bool operator==(const answer&) const = default;
};

answer run(const std::filesystem::path& folder, const program_job& job) {
  counting::ran = 0;
  const auto runs = make_executor("cpu", std::make_shared<feature_store>(folder));
  const std::vector<mneme::job> batch{{.id = {}, .request = job}};
  const auto outcome = runs->run(batch).front();
  return {tensors_of(outcome).at("sum").item<float>(), counting::ran};
}

program_job job_of(std::int64_t slices, float x, const std::shared_ptr<dataset>& source) {
  auto in = std::make_shared<tensor_map>();
  in->put("x", floats({x}));
  return {.body = std::make_shared<const counting>(slices), .in = in, .samples = rows_from(source, 0, 3)};
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

} // namespace

TEST_CASE("a cached outcome is found by all its inputs and nothing else") {
  const scratch_folder root;
  const auto folder = root.path() / "kept";
  const auto source = drawn_data(4, {1, 2, 2}, 2);
  const auto first = run(folder, job_of(3, 1.0F, source));
  CHECK(first.slices == 3);
  CHECK(files_in(folder).size() == 1);
  CHECK((run(folder, job_of(3, 1.0F, source)) == answer{first.sum, 0}));
  CHECK((run(folder, job_of(3, 1.0F, drawn_data(4, {1, 2, 2}, 2))) == answer{first.sum, 0})); // rows with equal content

  CHECK(run(folder, job_of(3, 2.0F, source)).slices == 3);
  CHECK(run(folder, job_of(2, 1.0F, source)).slices == 2);
  auto other_stream = job_of(3, 1.0F, source);
  other_stream.stream.index = 1;
  CHECK(run(folder, other_stream).slices == 3);
  const auto other_labels = drawn_data(4, {1, 2, 2}, 2);
  other_labels->labels[0] = 1;
  CHECK((run(folder, job_of(3, 1.0F, other_labels)) == answer{first.sum + 1.0F, 3}));
  const auto other_pixels = drawn_data(4, {1, 2, 2}, 2);
  other_pixels->images.mutable_data_ptr<std::uint8_t>()[15] ^= 1;
  CHECK(run(folder, job_of(3, 1.0F, other_pixels)).slices == 3);
  CHECK(files_in(folder).size() == 6);
}

TEST_CASE("outcomes of a single slice are not cached, nor any without a folder") {
  const scratch_folder root;
  const auto source = drawn_data(4, {1, 2, 2}, 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(run(root.path() / "kept", job_of(1, 1.0F, source)).slices == 1);
    CHECK(run({}, job_of(3, 1.0F, source)).slices == 3);
  }
  CHECK_FALSE(std::filesystem::exists(root.path() / "kept"));
}

TEST_CASE("a cached file that is damaged, or of another shape, is recomputed") {
  const scratch_folder root;
  const auto folder = root.path() / "kept";
  const auto source = drawn_data(4, {1, 2, 2}, 2);
  const auto whole = run(folder, job_of(3, 1.0F, source));
  const auto file = files_in(folder).front();
  for (const auto* content : {"", "no safetensors at all"}) {
    std::ofstream(file) << content;
    CHECK(run(folder, job_of(3, 1.0F, source)) == whole);
    CHECK((run(folder, job_of(3, 1.0F, source)) == answer{whole.sum, 0}));
  }
  auto content = content_of(file);
  content.back() = static_cast<char>(content.back() ^ 0x40); // still a float
  write_file(file, content);
  diagnostics damaged;
  outcome_store store(folder, [&](const diagnostics& damage) { append(damaged, damage); });
  CHECK(store.find(job_of(3, 1.0F, source)) == nullptr);
  REQUIRE(damaged.size() == 1);
  CHECK(damaged[0].where == file.string());
  CHECK(run(folder, job_of(3, 1.0F, source)) == whole);
}
