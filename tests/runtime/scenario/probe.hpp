/// probe: a method and a model with keys of every type, and a folder for scenarios.
#pragma once
#include "runtime/scenario/read.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
namespace mneme::test {

/// probe.cpp registers [strategy] name = "probe-method" (mu, rule, layers, pause, buffer, extra; presets "small" and
/// "broken") and [model] name = "probe-net" (hidden, probed) and "probe-stem" (stem).
inline const std::string probe_sections = "\n[strategy]\nname = \"probe-method\"\n[model]\nname = \"probe-net\"\n";

/// Folder of scenario files; locations in diagnostics are relative to it.
class scenario_folder {
public:
  /// Writes a file below the folder.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const auto file = folder_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    write_file(file, text);
    return file;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  /// Reads a scenario; fails the test if it is invalid.
  [[nodiscard]] reading read(const std::string& name, const overrides& over = {}) const {
    auto got = read_scenario(folder_.path() / name, over);
    if (!got)
      FAIL("refused:\n" << all(got.error()));
    return std::move(*got);
  }
  /// Errors, one per line, with locations relative to the folder; "" if there are none.
  [[nodiscard]] std::string refusal(const std::string& name, const overrides& over = {}) const {
    const auto got = read_scenario(folder_.path() / name, over);
    return got ? "" : all(got.error());
  }
  [[nodiscard]] std::string all(const diagnostics& list) const {
    std::string text;
    for (const auto& diagnostic : list)
      text += relative(diagnostic_text(diagnostic)) + "\n";
    return text;
  }
  /// Text without the folder's path.
  [[nodiscard]] std::string relative(std::string text) const {
    const auto lead = folder_.path().string() + "/";
    for (auto at = text.find(lead); at != std::string::npos; at = text.find(lead))
      text.erase(at, lead.size());
    return text;
  }

private:
  scratch_folder folder_;
};

} // namespace mneme::test
