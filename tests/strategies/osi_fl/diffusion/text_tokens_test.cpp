// Vocabularies, and conversion between texts and token numbers, compared with the library transformers
// (tools/research/export/picture_parts_reference.py).
#include "strategies/osi_fl/diffusion/unicode_points.hpp"
#include "tests/support/tiny_parts.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("texts have the token numbers of transformers' CLIPTokenizer") {
  const auto tokens = tiny_tokens();
  CHECK(tokens.size() == 537);
  std::size_t tried = 0;
  const auto record = parts_record("texts");
  for (const auto& line : record["tokens"]) {
    const auto text = line["text"].get<std::string>();
    CAPTURE(text);
    CHECK((tokens.numbers(text, 77) == line["ids"].get<std::vector<std::int64_t>>()));
    ++tried;
  }
  CHECK(tried == 17);
}

TEST_CASE("a long text is cut but keeps its end token") {
  const auto tokens = tiny_tokens();
  const auto whole = tokens.numbers("a cat and a dog", 77), cut = tokens.numbers("a cat and a dog", 4);
  CHECK(cut.size() == 4);
  CHECK(std::equal(cut.begin(), cut.begin() + 3, whole.begin()));
  CHECK(cut.back() == whole.back());
  CHECK((tokens.numbers("", 2) == std::vector<std::int64_t>{535, 536}));
}

TEST_CASE("captions decode like transformers' GPT2Tokenizer") {
  const auto words = tiny_words();
  CHECK(words.end() == words.size() - 1);
  const auto record = parts_record("captions");
  CHECK(record["decoded"].size() == 6);
  for (const auto& line : record["decoded"])
    CHECK(words.text(line["ids"].get<std::vector<std::int64_t>>()) == line["text"].get<std::string>());
  for (const auto& search : record["searches"])
    for (std::size_t i = 0; i < search["ids"].size(); ++i)
      CHECK(words.text(search["ids"][i].get<std::vector<std::int64_t>>()) == search["texts"][i].get<std::string>());
}

TEST_CASE("every byte survives encoding to letters and decoding") {
  const auto& letters = byte_letters();
  std::string json = "{";
  for (std::size_t byte = 0; byte < letters.size(); ++byte) {
    std::string letter;
    add_point(letter, letters[byte]);
    json += (letter == "\"" || letter == "\\" ? "\"\\" + letter : "\"" + letter) + "\": " + std::to_string(byte) + ", ";
  }
  const auto words = caption_words::read(json + "\"<|endoftext|>\": 256}");
  REQUIRE(words);
  std::string text = "x"; // then every letter of two bytes, and some of three and four bytes
  for (char32_t point = 0x80; point < 0x800; ++point)
    add_point(text, point);
  text += "\u20AC\uFFFD\U0001F600\U0010FFFF!";
  std::vector<std::int64_t> numbers;
  for (const auto byte : text)
    numbers.push_back(static_cast<std::uint8_t>(byte));
  CHECK(words->text(numbers) == text);
}

TEST_CASE("incomplete UTF-8 becomes one replacement character per longest invalid piece") {
  const auto seen = [](std::string_view bytes) { return points_of(bytes); };
  CHECK(seen("a\xE2\x82") == U"a\xFFFD");
  CHECK(seen("\xE2\x82\x41") == U"\xFFFD\x41");
  CHECK(seen("\xC0\x80") == U"\xFFFD\xFFFD");           // overlong form
  CHECK(seen("\xED\xA0\x80") == U"\xFFFD\xFFFD\xFFFD"); // half of a surrogate pair
  CHECK(seen("\xF4\x90\x80\x80") == U"\xFFFD\xFFFD\xFFFD\xFFFD");
  CHECK(seen("\xF0\x9F\x98") == U"\xFFFD");
}

TEST_CASE("vocabularies and merges that do not fit are refused with their location") {
  const auto error_text = [](const std::string& json) { return read_vocabulary(json).error(); };
  const auto misshapen = [](int entry) {
    return fmt::format("entry {}: expected one object of tokens and whole numbers from 0", entry);
  };
  CHECK_THAT(error_text("[1]"), ContainsSubstring(misshapen(1)));
  CHECK_THAT(error_text("7"), ContainsSubstring(misshapen(1)));
  CHECK_THAT(error_text("{\"a\": 0, \"b\": {}}"), ContainsSubstring(misshapen(2)));
  CHECK_THAT(error_text("{\"a\": -1}"), ContainsSubstring(misshapen(1)));
  CHECK_THAT(error_text("{\"a\": 0.5}"), ContainsSubstring(misshapen(1)));
  CHECK_THAT(error_text("{\"a\": 0, \"a\": 1}"), ContainsSubstring("entry 2: 'a' occurs twice"));
  CHECK_THAT(error_text("{\"a\": 0, \"b\": 2}"),
             ContainsSubstring("entry 2: number 2 of 'b' is too large; 2 tokens count"));
  CHECK_THAT(error_text("{\"a\": 0, \"b\": 0}"), ContainsSubstring("entry 2: number 0 of 'b' is used twice"));
  CHECK_THAT(error_text("{\"a\": 0"), ContainsSubstring("byte 7: is not valid JSON"));
  CHECK_THAT(error_text("{\"a"), ContainsSubstring("byte 3: is not valid JSON"));
  CHECK_THAT(error_text("{\"\\x\": 0}"), ContainsSubstring("byte 3: is not valid JSON"));
  CHECK_THAT(error_text("{\"a\": 0} x"), ContainsSubstring("byte 9: is not valid JSON"));
  CHECK_THAT(error_text("{\"\xff\": 0}"), ContainsSubstring("byte 2: is not valid JSON"));
  CHECK(read_vocabulary("{\"\\u0120\\ud83d\\ude00\\n\": 0}").value().tokens[0] == "\u0120\U0001F600\n");
  CHECK(read_vocabulary("{}").value().size() == 0);

  const auto json = text_of_part("text_tokens.json");
  const auto of_merges = [&](const std::string& merges) { return text_tokens::read(json, merges).error(); };
  CHECK_THAT(of_merges("#version: 0.2\na n\nq z\n"), ContainsSubstring("line 3: 'qz' is not a token"));
  CHECK_THAT(of_merges("a n x\n"), ContainsSubstring("line 1: expected two tokens"));
  CHECK_THAT(text_tokens::read("{\"a\": 0}", "").error(), ContainsSubstring("lacks '<|startoftext|>'"));
  CHECK_THAT(caption_words::read("{\"a\": 0}").error(), ContainsSubstring("lacks '<|endoftext|>'"));
  CHECK(text_tokens::read(json, "#version: 0.2\r\na n\r\n")->numbers("an", 3).size() == 3);
}
