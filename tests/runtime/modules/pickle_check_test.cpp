#include "runtime/modules/pickle_check.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace std::string_literals;
using namespace std::string_view_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Pickle of a module whose only member is built by these instructions.
std::string module_with(std::string_view member) {
  return std::string("\x80\x02"
                     "c__torch__\nNet\n)\x81}(X\x01\0\0\0w"sv) +
         std::string(member) + "ub.";
}

/// Float tensor of `sizes` in storage '0' with `numbers` elements; the archive has 64 bytes for it. Arguments are
/// pickle instructions.
std::string tensor(std::string_view numbers, std::string_view offset, std::string_view sizes,
                   std::string_view strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((X\x07"s +
         std::string("\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpu"sv) + std::string(numbers) + "tQ" +
         std::string(offset) + std::string(sizes) + std::string(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string refusal(std::string_view pickle) { return pickle_error(pickle, pickle_root::module, {{"0", 64}}); }

struct refused_pickle {
  const char* title;
  std::string pickle;
  const char* text;
};

} // namespace

TEST_CASE("a pickle as TorchScript writes it is accepted") {
  CHECK(refusal(module_with("\x88"sv)).empty());
  CHECK(refusal(module_with("(K\x05M\1\2J\0\0\1\0\x8a\x08\1\2\3\4\5\6\7\x08NG\0\0\0\0\0\0\0\0tq\0"sv)).empty());
  CHECK(refusal(module_with("ctorch.jit._pickle\nbuild_intlist\n](K\1K\2e\x85R"sv)).empty());
  CHECK(refusal(module_with(tensor("K\x10", "K\0"sv, "(K\4K\4t", "(K\4K\1t"))).empty());
  CHECK(pickle_error("\x80\x02)."sv, pickle_root::constants, {}).empty());
}

TEST_CASE("a malicious pickle that LibTorch would accept is refused with its byte") {
  const auto& [title, pickle, text] = GENERATE(values<refused_pickle>({
      {"another function", module_with("cposix\nsystem\n(X\2\0\0\0lstR"sv), "it calls 'posix.system' with arguments"},
      {"a class of LibTorch's", module_with("c__torch__.torch.classes.x\nY\n)\x81}b"sv),
       "a class that is not the archive's own"},
      {"another class", module_with("cbuiltins\nobject\n)\x81}b"sv), "a class that is not the archive's own"},
      {"a storage larger than its entry", module_with(tensor("K\x11", "K\0"sv, "(K\1t", "(K\1t")),
       "storage '0' shall have 17 numbers of 4 bytes, and the archive has 64 bytes of it"},
      {"a tensor behind its storage", module_with(tensor("K\x10", "K\1", "(K\4K\4t", "(K\4K\1t")),
       "a tensor reaches beyond its storage of 16 numbers"},
      {"a stride backwards", module_with(tensor("K\x10", "K\0"sv, "(K\4K\4t", "(J\xff\xff\xff\xffK\1t")),
       "reaches beyond"},
      {"strides whose product overflows",
       module_with(tensor("K\x10", "K\0"sv, "(\x8a\x08\0\0\0\0\0\1\0\0K\4t"sv, "(\x8a\x08\0\0\0\0\0\1\0\0K\1t"sv)),
       "reaches beyond"},
      {"a number expanded to memory for nobody", module_with(tensor("K\1", "K\0"sv, "(J\0\0\0\x40t"sv, "(K\0t"sv)),
       "reaches beyond"},
      {"a list within itself", module_with("]q\0(h\0e"sv), "a class or a value itself"},
      {"a list within a list within it", module_with("]q\0]q\1(h\0eq\2h\0(h\1e"sv), "part of another one"},
      {"a number as a function", module_with("K\0)R"sv), "what is called is missing"},
      {"an instruction of others", module_with("I7\n"sv), "instruction 73 is none that torch.jit.save writes"},
      {"a type of LibTorch's",
       module_with("ctorch.jit._pickle\nrestore_type_tag\n]X\x14\0\0\0List[torch.classes.]\x86R"sv),
       "a type of a list"},
      {"two values", "\x80\x02NN.", "parts left over"},
      {"no module", "\x80\x02N.", "it holds no module"},
  }));
  CAPTURE(title);
  CHECK_THAT(refusal(pickle), ContainsSubstring(text));
}

TEST_CASE("values may be nested a thousand levels deep and no deeper") {
  const auto nested = [](int depth) { return module_with(")" + std::string(static_cast<std::size_t>(depth), '\x85')); };
  CHECK(refusal(nested(900)).empty());
  CHECK_THAT(refusal(nested(1100)), ContainsSubstring("nest deeper than 1000"));
}

TEST_CASE("truncated strings and impossible offsets are refused") {
  CHECK(refusal("\x80\x02X\x0aKlt0123"sv) ==
        "byte 3 of a pickle says that a text of 1953254154 bytes follows, and 4 do; the file is damaged");
  CHECK(refusal("\x80\x02]r\xff\xff\xff\x7f."sv) ==
        "byte 4 of a pickle keeps a value at place 2147483647, and there are no more values than bytes, 9; the file is "
        "damaged");
  CHECK(refusal("\x80\x02)c__torch__\nNet"sv) ==
        "byte 14 of a pickle begins a name that does not end; the file is damaged");
  CHECK(refusal("\x80"sv) == "byte 1 of a pickle is behind its end; the file is damaged");
}
