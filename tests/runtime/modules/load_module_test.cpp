#include "runtime/modules/load_module.hpp"
#include "tests/support/formula.hpp"
#include "tests/support/module_files.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Errors of loading the file, one per line; "" if there are none.
std::string complaint_about(const std::filesystem::path& file, module_requirements wanted = {}) {
  wanted.input = {1, 6, 6};
  wanted.classes = 5;
  wanted.guards.sandbox = false; // run the checks of the sandbox in this process
  const auto net = load_module(file, wanted);
  std::string text;
  if (!net)
    for (const auto& found : net.error())
      text += diagnostic_text(found) + "\n";
  return text;
}

std::string complaint_about_bytes(const std::string& bytes, const module_requirements& wanted = {}) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt2", bytes);
  return complaint_about(folder.path() / "net.pt2", wanted);
}

std::string complaint_about(const made_program& made, const module_requirements& wanted = {}) {
  return complaint_about_bytes(made.bytes(), wanted);
}

struct refused {
  const char* title;
  made_program made;
  const char* text;
};

/// One call on the flattened rows.
made_program call_on_flat(const std::string& target, std::vector<std::pair<std::string, json>> more) {
  made_program made;
  more.emplace(more.begin(), "self", flattened(made, tensor_named("x")));
  made.call(target, more);
  return made;
}

made_program program_without_flatten() {
  made_program made;
  made.call("relu.default", {{"self", tensor_named("x")}});
  return made;
}

/// Rows minus the mean of all rows of the call.
made_program program_that_mixes_rows() {
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  const auto mean = made.call("mean.dim", {{"self", flat}, {"dim", numbers({0})}});
  made.call("sub.Tensor", {{"self", flat}, {"other", mean}});
  return made;
}

made_program program_for_other_images() {
  made_program made;
  const auto images = made.call("view.default", {{"self", tensor_named("x")}, {"size", numbers({-1, 3, 6, 6})}});
  flattened(made, images);
  return made;
}

/// Divides flat rows by 0, and the result by itself.
made_program program_with_nan() {
  auto made = call_on_flat("div.Tensor", {{"other", real(0.0)}});
  const auto infinite = tensor_named(made.nodes.back()["name"].get<std::string>());
  made.call("mul.Tensor", {{"self", infinite}, {"other", real(0.0)}});
  return made;
}

} // namespace

TEST_CASE("a module that does not fit the run is refused with the difference") {
  const std::vector<refused> cases{
      {"a shape", program_without_flatten(),
       "forward returned shape [16, 1, 6, 6] for rows of shape [16, 1, 6, 6]; expected [16, D]: end it with "
       "torch.flatten(x, 1)"},
      {"one result for all rows", call_on_flat("sum.dim_IntList", {{"dim", numbers({0})}, {"keepdim", flag(true)}}),
       "expected [16, D]"},
      {"float64", call_on_flat("to.dtype", {{"dtype", {{"as_scalar_type", 8}}}}),
       "forward returned Double; expected float32"},
      {"NaN", program_with_nan(), "forward returned values that are NaN or infinite"},
      {"random numbers", call_on_flat("rand_like.default", {}), "it draws random numbers in evaluation mode, too"},
      {"rows mixed", program_that_mixes_rows(),
       "the result of a row depends on the other rows of its call by more than rounding"},
      {"other images", program_for_other_images(),
       "forward failed on rows of shape [16, 1, 6, 6]: torch.ops.aten.view.default (v0): shape '[-1, 3, 6, 6]' is "
       "invalid"},
      {"half", scaled_rows(at::ones({36}, at::kHalf)),
       "parameter 'scale' is Half; expected float32: call net.float() before it is exported"}};
  for (const auto& [title, made, text] : cases) {
    CAPTURE(title);
    CHECK_THAT(complaint_about(made), ContainsSubstring(text));
  }
}

TEST_CASE("a module must return a score for each class of the run") {
  made_program made;
  const auto flat = flattened(made, tensor_named("x"));
  CHECK_THAT(complaint_about(made, {.scores = true}),
             ContainsSubstring("forward returns 36 numbers for a row, but the run has 5 classes"));
  made.call("slice.Tensor", {{"self", flat}, {"dim", number(1)}, {"start", number(0)}, {"end", number(5)}});
  CHECK(complaint_about(made, {.scores = true}).empty());
}

TEST_CASE("parameters without a gradient cannot be trained but may stay frozen") {
  auto made = scaled_rows();
  made.call("detach.default", {{"self", tensor_named(made.nodes.back()["name"].get<std::string>())}});
  CHECK_THAT(complaint_about(made, {.trained = true}), ContainsSubstring("no gradient reaches its parameters"));
  CHECK(complaint_about(made).empty());
}

TEST_CASE("a module made for single rows is called row by row") {
  made_program made;
  const auto row = made.call("view.default", {{"self", tensor_named("x")}, {"size", numbers({1, 36})}});
  made.call("mul.Tensor", {{"self", row}, {"other", number(2)}});
  const scratch_folder folder;
  write_module(folder.path() / "net.pt2", made);
  const auto net =
      load_module(folder.path() / "net.pt2", {.input = {1, 6, 6}, .classes = 5, .guards = {.sandbox = false}}).value();
  const auto x = spread_numbers({1, 5, 1, 6, 6});
  auto flat = initial_weights(*net, 1);
  CHECK(at::equal(as_model(net).forward(flat.unsqueeze(0), x, {}, nullptr).features[0], x[0].flatten(1) * 2));
}

TEST_CASE("a file truncated at any point is refused") {
  const auto whole = small_convolution().bytes();
  REQUIRE(complaint_about_bytes(whole).empty());
  for (std::size_t length = 0; length < whole.size(); length += 61) {
    CAPTURE(length);
    CHECK_THAT(complaint_about_bytes(whole.substr(0, length)), ContainsSubstring("net.pt2"));
  }
}

TEST_CASE("a damaged byte is detected or harmless and never causes a crash") {
  const auto whole = small_convolution().bytes();
  std::size_t refused_files = 0, tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += 37) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    ++tried;
    refused_files += complaint_about_bytes(damaged).empty() ? 0 : 1;
  }
  CHECK(refused_files * 2 > tried); // bytes between entries, such as times, do not matter
}

TEST_CASE("files of other kinds are refused by name") {
  CHECK_THAT(complaint_about_bytes("\x80\x02}q"), ContainsSubstring("the file is one of torch.save"));
  CHECK_THAT(complaint_about_bytes("not a net"),
             ContainsSubstring("the file is no zip archive; expected an exported program (.pt2): export the net by "));
  CHECK_THAT(complaint_about(std::filesystem::path("/nowhere/net.pt2")), ContainsSubstring("/nowhere/net.pt2"));
  CHECK_THAT(complaint_about(std::filesystem::temp_directory_path()), ContainsSubstring("folder"));
}

TEST_CASE("a TorchScript file is refused with the ways to export the net") {
  const auto text =
      complaint_about_bytes(zip_of({{"net/code/__torch__.py", "class Net:\n"}, {"net/data.pkl", "\x80"}}));
  CHECK_THAT(text, ContainsSubstring("net.pt2: error: the file is TorchScript (torch.jit.save), whose code mneme does "
                                     "not run; expected an exported program (.pt2): export the net by `python -m mneme "
                                     "export-net FILE.py:FUNCTION"));
  CHECK_THAT(text, ContainsSubstring("torch.export.save(torch.export.export(net, (rows,), dynamic_shapes="));
}

TEST_CASE("a file of each supported minor version of PyTorch gives the same results") {
  const std::filesystem::path golden = std::filesystem::path(MNEME_SOURCE_DIR) / "tests/golden/modules";
  auto rows = formula("rows", 4 * 300);
  const auto x = at::from_blob(rows.data(), {1, 4, 3, 10, 10});
  std::ifstream file(golden / "tiny.txt");
  auto expected = at::empty({4, 64}, at::kDouble);
  for (std::int64_t i = 0; i < expected.numel(); ++i)
    REQUIRE(file >> expected.mutable_data_ptr<double>()[i]);
  std::vector<std::string> tried;
  std::vector<at::Tensor> trained;
  for (const auto& entry : std::filesystem::directory_iterator(golden / "versions")) {
    CAPTURE(entry.path());
    tried.push_back(entry.path().filename());
    const auto net = load_module(
        entry.path(),
        {.input = {3, 10, 10}, .classes = 5, .trained = true, .training = true, .guards = {.sandbox = false}});
    REQUIRE(net.has_value());
    auto weights = initial_weights(**net, 1);
    (*net)->put_own_values(weights);
    weights = weights.unsqueeze(0);
    const at::NoGradGuard no_gradients;
    const auto found = as_model(*net).forward(weights, x, {}, nullptr).features[0];
    CHECK((found.to(at::kDouble) - expected).abs().max().item<double>() < 1e-6);
    tape kept;
    const training_mode training;
    static_cast<void>(as_model(*net).forward(weights, x, {0, 5}, &kept, &training));
    trained.push_back(weights);
    CHECK(at::equal(trained.back(), trained.front())); // the running statistics after one step
  }
  std::sort(tried.begin(), tried.end());
  CHECK(tried == std::vector<std::string>{"torch-2.10.pt2", "torch-2.11.pt2", "torch-2.12.pt2", "torch-2.13.pt2",
                                          "torch-2.15.pt2", "torch-2.9.pt2"});
}
