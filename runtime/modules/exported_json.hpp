/// exported_json: reads the JSON of an exported program; everything unexpected throws exported_error.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
namespace mneme {

/// Why a file of torch.export is refused, as a sentence.
class exported_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

namespace exported {

using nlohmann::json;

constexpr std::size_t json_bytes_max = std::size_t{64} << 20;
constexpr std::size_t nodes_max = 100'000; ///< Of a graph; inputs and results as well.
constexpr std::size_t list_max = 4096;     ///< Items of an argument.

/// Parses a text. @param name of the entry, for errors
[[nodiscard]] json parse_json(const std::string& text, const std::string& name);
[[nodiscard]] const json& field(const json& object, const char* name);
[[nodiscard]] const json& list_field(const json& object, const char* name, std::size_t items_max);
/// A string of at most 512 bytes.
[[nodiscard]] std::string string_of(const json& value);
[[nodiscard]] std::int64_t integer_of(const json& value);
[[nodiscard]] bool flag_of(const json& value);
/// A number, or "Infinity", "-Infinity" and "NaN".
[[nodiscard]] double real_of(const json& value);
/// The name and value of a tagged union: an object with one member.
[[nodiscard]] std::pair<std::string, const json&> variant_of(const json& value);

} // namespace exported
} // namespace mneme
