#include "runtime/scenario/schema.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/scenario/layers.hpp"
#include "runtime/scenario/sections.hpp"
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using json = nlohmann::ordered_json;

json as_json(const toml::node& value) {
  if (const auto* text = value.as_string())
    return text->get();
  if (const auto* number = value.as_floating_point())
    return number->get();
  if (const auto* integer = value.as_integer())
    return integer->get();
  if (const auto* truth = value.as_boolean())
    return truth->get();
  json listed;
  if (const auto* list = value.as_array())
    for (listed = json::array(); const auto& node : *list)
      listed.push_back(as_json(node));
  if (const auto* table = value.as_table())
    for (listed = json::object(); const auto& [key, node] : *table)
      listed[std::string(key.str())] = as_json(node);
  return listed;
}

json number_schema(const char* type, const range<double>& bounds) {
  return {{"type", type}, {bounds.open_low ? "exclusiveMinimum" : "minimum", bounds.low}, {"maximum", bounds.high}};
}

json list_schema(json element) { return {{"type", "array"}, {"items", std::move(element)}}; }

/// Makes the JSON schema of a value type.
struct value_schema {
  const key& described;

  json operator()(const bool*) const { return {{"type", "boolean"}}; }
  json operator()(const std::int64_t*) const { return number_schema("integer", described.bounds); }
  json operator()(const double*) const { return number_schema("number", described.bounds); }
  json operator()(const std::string*) const {
    json schema{{"type", "string"}};
    if (!described.choices.empty())
      schema["enum"] = described.choices;
    return schema;
  }
  json operator()(const std::filesystem::path*) const { return {{"type", "string"}}; }
  json operator()(const virtual_duration*) const {
    return {{"type", "string"}, {"pattern", "^ *[0-9][0-9.]* *(ns|us|ms|s|min|h) *$"}};
  }
  json operator()(const byte_size*) const {
    return {{"type", "string"}, {"pattern", "^ *[0-9][0-9.]* *(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB) *$"}};
  }
  json operator()(const std::vector<std::int64_t>*) const {
    return list_schema(number_schema("integer", described.bounds));
  }
  json operator()(const std::vector<double>*) const { return list_schema(number_schema("number", described.bounds)); }
  json operator()(const std::vector<std::string>*) const { return list_schema({{"type", "string"}}); }
  json operator()(const device_value*) const {
    const auto number = number_schema("number", described.bounds);
    const json normal{{"type", "object"},
                      {"properties", {{"median", number}, {"sigma", {{"type", "number"}, {"minimum", 0.0}}}}},
                      {"required", json::array({"median"})},
                      {"additionalProperties", false}};
    return {{"anyOf", json::array({number, list_schema(number), normal})}};
  }
  json operator()(const std::variant<std::string, std::vector<std::int64_t>>*) const {
    const json word{{"type", "string"}, {"enum", described.choices}};
    return {{"anyOf", json::array({word, list_schema(number_schema("integer", described.bounds))})}};
  }
  json operator()(const word_or_names*) const {
    const json word{{"type", "string"}, {"enum", described.choices}};
    const json name{{"anyOf", json::array({json{{"type", "string"}}, json{{"type", "integer"}}})}};
    return {{"anyOf", json::array({word, list_schema(name)})}};
  }
  json operator()(const std::vector<profile_choice>*) const {
    json properties{{"share", {{"type", "number"}, {"exclusiveMinimum", 0.0}}}};
    for (const char* word : {"name", "file", "text", "link"})
      properties[word] = {{"type", "string"}};
    return list_schema({{"type", "object"}, {"properties", properties}, {"additionalProperties", false}});
  }
};

json key_schema(const key& option) {
  auto schema = std::visit(value_schema{option}, option.target);
  schema["description"] = option.meaning;
  std::vector<scenario_error> none;
  const auto parsed = parse_layer("default", "value = " + option.default_text, none);
  if (const auto* value = parsed.values.get("value"))
    schema["default"] = as_json(*value);
  return schema;
}

json properties_of(const key_table& keys) {
  json properties = json::object();
  for (const auto& option : keys.all())
    properties[option.name] = key_schema(option);
  return properties;
}

/// Schema of [model] or [strategy]: the shared keys, and the keys of the kind that `name` selects. Without `name`,
/// which another file may set, the keys of all kinds are accepted.
template <class Entries>
json choose_schema(const json& shared, const Entries& entries) {
  json every_name = json::array();
  for (const auto& [name, schema] : shared.items())
    every_name.push_back(name);
  json choices = json::array();
  for (const auto& entry : entries) {
    const auto item = entry.make(); // must outlive the table with keys bound to its members
    key_table own;
    item->keys(own);
    auto properties = shared;
    const auto own_properties = properties_of(own);
    for (const auto& [name, schema] : own_properties.items()) {
      properties[name] = schema;
      if (std::find(every_name.begin(), every_name.end(), name) == every_name.end())
        every_name.push_back(name);
    }
    const json is_chosen{{"properties", {{"name", {{"const", entry.name}}}}}, {"required", json::array({"name"})}};
    choices.push_back({{"if", is_chosen}, {"then", {{"properties", properties}, {"additionalProperties", false}}}});
  }
  return {{"properties", shared}, {"propertyNames", {{"enum", every_name}}}, {"allOf", choices}};
}

json section_schema(const section& group) {
  json schema{{"type", "object"}, {"description", group.meaning}};
  const auto shared = properties_of(group.keys);
  if (group.name == "model")
    schema.update(choose_schema(shared, models()));
  else if (group.name == "strategy")
    schema.update(choose_schema(shared, strategies()));
  else
    schema.update({{"properties", shared}, {"additionalProperties", false}});
  return schema;
}

} // namespace

std::string scenario_schema_text() {
  scenario defaults;
  const json path{{"type", "string"}, {"minLength", 1}};
  json properties{{"extends",
                   {{"anyOf", json::array({path, list_schema(path)})},
                    {"description", "Base scenario files, relative to this one."}}}};
  for (const auto& group : sections_of(defaults))
    if (group.name.empty())
      properties.update(properties_of(group.keys));
    else
      properties[group.name] = section_schema(group);
  const json whole{{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", "A mneme scenario"},
                   {"type", "object"},
                   {"properties", properties},
                   {"additionalProperties", false}};
  return whole.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace mneme
