#include "runtime/method/strategy.hpp"
#include "runtime/scenario/sections.hpp"
#include "tests/runtime/scenario/probe.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct path_key {
  std::string method{}, section{}, name{};
};

/// Every path key of all methods and models.
std::vector<path_key> all_path_keys() {
  std::vector<path_key> keys;
  std::set<std::string> known;
  for (const auto& method : strategies())
    for (const auto& model : models()) {
      scenario settings;
      settings.strategy.method = method.make();
      settings.model.kind = model.make();
      for (const auto& section : sections_of(settings))
        for (const auto& key : section.keys.all())
          if (std::holds_alternative<std::filesystem::path*>(key.target) &&
              known.insert(section.name + "." + key.name + (section.name == "strategy" ? method.name : "")).second)
            keys.push_back({method.name, section.name, key.name});
    }
  return keys;
}

std::string refusal(const std::string& text, const overrides& over = {}) {
  const auto read = read_received_scenario(text, over);
  return read ? "" : diagnostic_text(read.error().front());
}

} // namespace

TEST_CASE("an offered scenario that names a file of the reading machine by any key is refused", "[scenario]") {
  const auto keys = all_path_keys();
  CHECK(keys.size() >= 10);
  for (const auto& [method, section, name] : keys) {
    CAPTURE(method, section, name);
    const auto head = fmt::format("[strategy]\nname = \"{}\"\n{}", method,
                                  section == "strategy" ? "" : fmt::format("[{}]\n", section));
    const auto key = section + "." + name;
    CHECK_THAT(refusal(head + name + " = \"/etc/hostname\"\n"),
               ContainsSubstring(key + " names a file of another machine; expected the file's content"));
    CHECK_THAT(refusal(head + name + " = \"\"\n"), !ContainsSubstring("another machine"));
    CHECK_THAT(refusal(head + name + " = \"/etc/hostname\"\n", {{key, "\"\""}}), !ContainsSubstring("another machine"));
  }
}

TEST_CASE("an offered scenario cannot extend a file and is otherwise read like any scenario", "[scenario]") {
  const scenario_folder folder;
  const auto base = folder.write("base.toml", "[clients]\ncount = 40\n");
  CHECK(refusal("extends = \"" + base.string() + "\"\n" + probe_sections) ==
        "the offered scenario:1:11: error: extends: not allowed in a scenario received from another process; expected "
        "no such key");
  const auto read = read_received_scenario("[clients]\ncount = 7\n" + probe_sections, {});
  REQUIRE(read);
  CHECK(read->value.clients.count == 7);
  CHECK_THAT(refusal("[clients]\ncuont = 7\n" + probe_sections), ContainsSubstring("did you mean"));
}
