#include "runtime/modules/load_module.hpp"
#include "tests/support/scratch.hpp"
#include "tests/support/script_modules.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Errors of loading the file, one per line; "" if there are none.
std::string complaint_about(const std::filesystem::path& file, module_requirements wanted = {}) {
  wanted.input = {1, 6, 6};
  wanted.classes = 5;
  wanted.layers.sandbox = false; // run the checks of the sandbox in this process
  const auto net = load_module(file, wanted);
  std::string text;
  if (!net)
    for (const auto& found : net.error())
      text += diagnostic_text(found) + "\n";
  return text;
}

std::string complaint_about(const module_text& made, const module_requirements& wanted = {}) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", made);
  return complaint_about(folder.path() / "net.pt", wanted);
}

std::string complaint_about_bytes(const std::string& bytes) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt", bytes);
  return complaint_about(folder.path() / "net.pt");
}

std::string bytes_of(const module_text& made) {
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", made);
  return content_of(folder.path() / "net.pt");
}

/// Module without tensors whose forward() has these lines.
module_text lines(const std::string& code) { return {.code = "def forward(self, x):\n" + code}; }

struct refused {
  const char* title;
  module_text made;
  const char* text;
};

} // namespace

TEST_CASE("a module that does not fit the run is refused with the difference") {
  const auto& [title, made, text] = GENERATE(values<refused>({
      {"no forward", {.code = "def back(self, x):\n    return x\n"}, "the module has no method forward"},
      {"two arguments",
       {.code = "def forward(self, x, n: int):\n    return torch.flatten(x, 1) * n\n"},
       "forward takes (x: Tensor, n: int); expected one argument"},
      {"a tuple", lines("    return torch.flatten(x, 1), 1\n"),
       "forward returns Tuple[Tensor, int]; expected one tensor"},
      {"a shape", lines("    return x\n"),
       "forward returned shape [16, 1, 6, 6] for rows of shape [16, 1, 6, 6]; expected [16, D]: end it with "
       "torch.flatten(x, 1)"},
      {"one result for all rows", lines("    return torch.sum(x).view([1, 1])\n"), "expected [16, D]"},
      {"float64", lines("    return torch.flatten(x, 1).to(7)\n"), "forward returned Double; expected float32"},
      {"NaN", lines("    return torch.flatten(x, 1) / 0.0 * 0.0\n"),
       "forward returned values that are NaN or infinite"},
      {"random numbers", lines("    return torch.flatten(x, 1) + torch.rand([36])\n"), "forward calls aten::rand"},
      {"dropout", lines("    return torch.dropout(torch.flatten(x, 1), 0.5, True)\n"), "which draws random numbers"},
      {"printing", lines("    print(x)\n    return torch.flatten(x, 1)\n"), "its code calls print; leave it out"},
      {"a save", lines("    torch.save(x, \"stolen\")\n    return torch.flatten(x, 1)\n"),
       "its code calls aten::save, which is none of the operators that a module may use"},
      {"rows mixed", lines("    return torch.flatten(x - x.mean(0), 1)\n"),
       "the result of a row depends on the other rows of its call by more than rounding"},
      {"other images", lines("    return torch.flatten(x.view([-1, 3, 6, 6]), 1)\n"),
       "forward failed on rows of shape [16, 1, 6, 6]: shape '[-1, 3, 6, 6]' is invalid"},
      {"half",
       {.code = "def forward(self, x):\n    return torch.flatten(x, 1) * self.w\n",
        .parameters = {{"w", at::ones({36}, at::kHalf)}}},
       "parameter 'w' is Half; expected float32: call net.float() before it is exported"},
      {"a member assigned",
       {.code = "def forward(self, x):\n    self.calls = self.calls + 1\n    return torch.flatten(x, 1) * self.calls\n",
        .buffers = {{"calls", at::zeros({1})}}},
       "forward assigns to self.calls"},
      {"a member written",
       {.code = "def forward(self, x):\n    self.calls.mul_(1.0)\n    return torch.flatten(x, 1) * self.calls\n",
        .buffers = {{"calls", at::ones({1})}}},
       "forward writes to 'calls'; a result must not depend on earlier calls"},
      {"a member that counts",
       {.code = "def forward(self, x):\n    self.calls.add_(1.0)\n    return torch.flatten(x, 1) * self.calls\n",
        .buffers = {{"calls", at::ones({1})}}},
       "other numbers when it was called again"},
  }));
  CAPTURE(title);
  CHECK_THAT(complaint_about(made), ContainsSubstring(text));
}

TEST_CASE("all differences of a signature are reported together") {
  const auto text = complaint_about({.code = "def forward(self, x: int):\n    return x\n"});
  CHECK_THAT(text, ContainsSubstring("forward takes (x: int)") && ContainsSubstring("forward returns int"));
}

TEST_CASE("a module must return a score for each class of the run") {
  CHECK_THAT(complaint_about(lines("    return torch.flatten(x, 1)\n"), {.scores = true}),
             ContainsSubstring("forward returns 36 numbers for a row, but the run has 5 classes"));
  CHECK(complaint_about(lines("    return torch.flatten(x, 1)[:, :5]\n"), {.scores = true}).empty());
}

TEST_CASE("parameters without a gradient cannot be trained but may stay frozen") {
  const module_text made{.code = "def forward(self, x):\n    return (torch.flatten(x, 1) * self.w).detach()\n",
                         .parameters = {{"w", at::ones({36})}}};
  CHECK_THAT(complaint_about(made, {.trained = true}), ContainsSubstring("no gradient reaches its parameters"));
  CHECK(complaint_about(made).empty());
}

TEST_CASE("a module made for single rows is called row by row") {
  const auto made = lines("    return x.view([1, 36]) * 2.0\n");
  const scratch_folder folder;
  write_module(folder.path() / "net.pt", made);
  const auto net =
      load_module(folder.path() / "net.pt", {.input = {1, 6, 6}, .classes = 5, .layers = {.sandbox = false}}).value();
  const auto x = spread_numbers({1, 5, 1, 6, 6});
  auto flat = initial_weights(*net, 1);
  CHECK(at::equal(as_model(net).forward(flat.unsqueeze(0), x, {}, nullptr).features[0], x[0].flatten(1) * 2));
}

TEST_CASE("a file truncated at any point is refused") {
  const auto whole = bytes_of(small_convolution());
  REQUIRE(complaint_about_bytes(whole).empty());
  for (std::size_t length = 0; length < whole.size(); length += 61) {
    CAPTURE(length);
    CHECK_THAT(complaint_about_bytes(whole.substr(0, length)), ContainsSubstring("net.pt"));
  }
}

TEST_CASE("a damaged byte is detected or harmless and never causes a crash") {
  const auto whole = bytes_of(small_convolution());
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
             ContainsSubstring("the file is no zip archive; expected an exported program"));
  CHECK_THAT(complaint_about(std::filesystem::path("/nowhere/net.pt")), ContainsSubstring("/nowhere/net.pt"));
  CHECK_THAT(complaint_about(std::filesystem::temp_directory_path()), ContainsSubstring("folder"));
}

TEST_CASE("parts of a module that do not train are counted") {
  const scratch_folder folder;
  const auto text_of = [&](const module_text& made) {
    write_module(folder.path() / "net.pt", made);
    const auto net = load_module(folder.path() / "net.pt", {.input = {1, 6, 6}, .classes = 5, .trained = true});
    REQUIRE(net);
    const auto texts = (*net)->warnings();
    CHECK_THAT(texts.back(), ContainsSubstring("the module is TorchScript, which PyTorch has deprecated"));
    return texts.size() == 2 ? texts.front() : std::string();
  };
  CHECK(text_of(small_convolution()).empty());
  const module_text deaf{.code = R"(
def forward(self, x):
    x = torch.flatten(x, 1) * self.scale
    x = torch.batch_norm(x, None, None, self.mean, self.variance, False, 0.1, 1e-5, False)
    x = torch.dropout(x, 0.5, False)
    x = torch.dropout(x, 0.0, False)
    return torch.feature_dropout(x, 0.1, False)
)",
                         .parameters = {{"scale", at::ones({36})}},
                         .buffers = {{"mean", at::zeros({36})}, {"variance", at::ones({36})}}};
  CHECK(
      text_of(deaf) ==
      "a TorchScript module is in evaluation mode while it is trained: 2 dropouts drop nothing, 1 batch normalisation "
      "keeps the running statistics of the file (docs/modules.md); expected an exported program (.pt2) where that "
      "matters, and no torch.jit.freeze");
}
