/// exported_json: checked access to the JSON of an exported program. Unexpected content throws exported_error.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
namespace mneme {

/// The reason to reject a file of torch.export, as a sentence.
class exported_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

namespace exported {

using nlohmann::json;

constexpr std::size_t json_bytes_max = std::size_t{64} << 20;
constexpr std::size_t nodes_max = 100'000; ///< Nodes, inputs or outputs of a graph.
constexpr std::size_t list_max = 4096;     ///< Items of a list argument.

/// Parses JSON text. @param name the entry's name, for errors
[[nodiscard]] json parse_json(const std::string& text, const std::string& name);
/// The member of an object. Throws exported_error if it is missing.
[[nodiscard]] const json& field(const json& object, const char* name);
/// A member that is a list of at most `items_max` items. Throws exported_error otherwise.
[[nodiscard]] const json& list_field(const json& object, const char* name, std::size_t items_max);
/// The value as a string. Throws exported_error if it is not one, or has more than 512 bytes.
[[nodiscard]] std::string string_of(const json& value);
/// The value as an integer. Like the functions below, throws exported_error for another type.
[[nodiscard]] std::int64_t integer_of(const json& value);
/// The value as a boolean.
[[nodiscard]] bool flag_of(const json& value);
/// The value as a number. It may also be one of the strings "Infinity", "-Infinity" and "NaN".
[[nodiscard]] double real_of(const json& value);
/// Name and value of a tagged union, which is a JSON object with exactly one member.
[[nodiscard]] std::pair<std::string, const json&> variant_of(const json& value);

} // namespace exported
} // namespace mneme
