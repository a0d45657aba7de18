#include "runtime/modules/exported_json.hpp"
#include "runtime/base/exception_message.hpp"
#include <cmath>
#include <fmt/format.h>
#include <limits>
namespace mneme::exported {

json parse_json(const std::string& text, const std::string& name) {
  constexpr int depth_max = 64;
  if (text.size() > json_bytes_max)
    throw exported_error(fmt::format("{} has {} bytes; expected at most {}", name, text.size(), json_bytes_max));
  const auto is_shallow = [&](int depth, json::parse_event_t, json&) {
    if (depth > depth_max)
      throw exported_error(fmt::format("it is nested more than {} deep", depth_max));
    return true;
  };
  json parsed;
  if (auto error = torch_error_of([&] { parsed = json::parse(text, is_shallow); }); !error.empty())
    throw exported_error(fmt::format("{} cannot be read as JSON: {}", name, error));
  return parsed;
}

const json& field(const json& object, const char* name) {
  if (!object.is_object() || !object.contains(name))
    throw exported_error(fmt::format("the field '{}' is missing", name));
  return object[name];
}

const json& list_field(const json& object, const char* name, std::size_t items_max) {
  const auto& value = field(object, name);
  if (!value.is_array() || value.size() > items_max)
    throw exported_error(fmt::format("'{}' is not a list of at most {} items", name, items_max));
  return value;
}

std::string string_of(const json& value) {
  constexpr std::size_t bytes_max = 512;
  if (!value.is_string() || value.get_ref<const std::string&>().size() > bytes_max)
    throw exported_error(fmt::format("a name is not a string of at most {} bytes", bytes_max));
  return value.get<std::string>();
}

std::int64_t integer_of(const json& value) {
  const bool is_too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_integer() || is_too_large)
    throw exported_error("a value is not a 64-bit integer");
  return value.get<std::int64_t>();
}

bool flag_of(const json& value) {
  if (!value.is_boolean())
    throw exported_error("a value is not true or false");
  return value.get<bool>();
}

double real_of(const json& value) {
  if (value.is_number())
    return value.get<double>();
  if (value == "Infinity")
    return std::numeric_limits<double>::infinity();
  if (value == "-Infinity")
    return -std::numeric_limits<double>::infinity();
  if (value == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  throw exported_error("a value is not a number");
}

std::pair<std::string, const json&> variant_of(const json& value) {
  if (!value.is_object() || value.size() != 1)
    throw exported_error("a value is not an object with one member");
  return {value.begin().key(), value.begin().value()};
}

} // namespace mneme::exported
