#include "runtime/modules/load_module.hpp"
#include "tests/support/exported_programs.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t memory_bytes = std::int64_t{256} << 20;

/// Reason why the file is refused; "" if it is accepted. Runs in this process, as a run loads it.
std::string error_of_bytes(const std::string& bytes) {
  const scratch_folder folder;
  write_file(folder.path() / "net.pt2", bytes);
  const auto net =
      load_module(folder.path() / "net.pt2", {.input = {1, 6, 6},
                                              .classes = 5,
                                              .trained = true,
                                              .training = true,
                                              .guards = {.sandbox = false, .sandbox_memory_bytes = memory_bytes}});
  return net ? "" : diagnostic_text(net.error().front());
}
std::string error_of(const made_program& program) { return error_of_bytes(program.bytes()); }

json rows() { return tensor_named("x"); }

/// Flat rows times a weight: 36 features.
made_program honest_program() {
  made_program made;
  const auto flat = made.call("flatten.using_ints", {{"self", rows()}, {"start_dim", number(1)}});
  const auto weight = made.parameter("w", at::ones({36}));
  const auto scaled = made.call("mul.Tensor", {{"self", flat}, {"other", weight}});
  made.call("dropout.default", {{"input", scaled}, {"p", real(0.5)}, {"train", flag(true)}});
  return made;
}

/// The valid archive with another text for its graph.
std::string with_graph(const std::string& text) {
  auto entries = honest_program().entries();
  for (auto& [name, content] : entries)
    if (name == "model/models/model.json")
      content = text;
  return zip_of(entries);
}

} // namespace

TEST_CASE("JSON that would exhaust its parser is refused") {
  REQUIRE(error_of(honest_program()).empty());
  CHECK_THAT(error_of_bytes(with_graph(std::string(3'000'000, '['))), ContainsSubstring("nested more than 64 deep"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"a\":";
  CHECK_THAT(error_of_bytes(with_graph(objects)), ContainsSubstring("nested more than 64 deep"));
  CHECK_THAT(error_of_bytes(with_graph("{\"graph_module\": 1")), ContainsSubstring("cannot be read as JSON"));
  CHECK_THAT(error_of_bytes(with_graph("[1, 2]")), ContainsSubstring("the field 'schema_version' is missing"));
  CHECK_THAT(error_of_bytes(with_graph(std::string((64 << 20) + 1, ' '))),
             ContainsSubstring("expected at most 67108864"));
}

TEST_CASE("a program that needs more memory than its probe allows is refused") {
  constexpr const char* refusal = "bytes of memory that its trial may take";
  made_program large;
  large.call("zeros.default", {{"size", numbers({1 << 14, 1 << 13})}});
  CHECK_THAT(error_of(large), ContainsSubstring(refusal));
  made_program doubled;
  auto last = rows();
  for (int i = 0; i < 60; ++i)
    last = doubled.call("cat.default",
                        {{"tensors", tensors_named({last["as_tensor"]["name"], last["as_tensor"]["name"]})}});
  CHECK_THAT(error_of(doubled), ContainsSubstring(refusal));
  made_program repeated;
  last = rows();
  for (int i = 0; i < 40; ++i)
    last = repeated.call("repeat.default", {{"self", last}, {"repeats", numbers({2, 2, 1, 1})}});
  CHECK_FALSE(error_of(repeated).empty());
}

TEST_CASE("a program that computes more than rows of its size allow is refused") {
  made_program chain;
  auto last = chain.call("ones.default", {{"size", numbers({2048, 2048})}});
  const auto wide = chain.call("expand.default", {{"self", chain.call("ones.default", {{"size", numbers({1, 1})}})},
                                                  {"size", numbers({1 << 15, 1 << 15})}});
  chain.call("matmul.default", {{"self", wide}, {"other", wide}});
  CHECK_THAT(error_of(chain), ContainsSubstring("more than 1e+12 multiplications for a row"));
}

TEST_CASE("no changed byte of a graph crashes the reader, and each refusal has a reason") {
  auto entries = honest_program().entries();
  const auto graph = std::find_if(entries.begin(), entries.end(),
                                  [](const auto& entry) { return entry.first == "model/models/model.json"; });
  const auto honest = graph->second;
  std::size_t refused = 0, tried = 0;
  for (std::size_t at = 0; at < honest.size(); at += 7)
    for (const char letter : {'9', '"', '\0'}) {
      graph->second = honest;
      graph->second[at] = letter;
      const auto program = read_program(zip_of(entries));
      ++tried;
      if (program)
        continue;
      ++refused;
      CHECK_FALSE(program.error().empty());
    }
  CHECK(refused * 2 > tried);
}
