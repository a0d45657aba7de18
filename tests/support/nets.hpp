/// nets: creates nets by name, for tests.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/options/keys.hpp"
#include "tests/support/tensors.hpp"
namespace mneme::test {

using shape3 = std::array<std::int64_t, 3>;

inline std::unique_ptr<model_kind> kind_of(const std::string& name) {
  for (const auto& entry : models())
    if (entry.name == name)
      return entry.make();
  FAIL("no model is called " << name);
  return nullptr;
}
/// Splits "a, b" into a list.
inline std::vector<std::string> listed_texts(const std::string& text) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(", ", at), text.size());
    texts.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return texts;
}
/// Keys of [model] with words, numbers and lists as text.
using model_keys = std::vector<std::pair<std::string, std::string>>;
inline std::unique_ptr<model_kind> kind_with(const std::string& name, const model_keys& chosen) {
  auto kind = kind_of(name);
  key_table keys;
  kind->keys(keys);
  for (const auto& [key, value] : chosen) {
    INFO(name << ", " << key << " = " << value);
    const auto* const found = keys.find(key);
    REQUIRE(found);
    if (found->chosen)
      found->chosen(value);
    else if (auto* const texts = std::get_if<std::vector<std::string>*>(&found->target))
      **texts = listed_texts(value);
    else if (auto* const numbers = std::get_if<std::vector<std::int64_t>*>(&found->target)) {
      (*numbers)->clear();
      for (const auto& text : listed_texts(value))
        (*numbers)->push_back(std::stoll(text));
    } else if (auto* const number = std::get_if<double*>(&found->target))
      **number = std::stod(value);
    else if (auto* const flag = std::get_if<bool*>(&found->target))
      **flag = value == "true";
    else
      *std::get<std::int64_t*>(found->target) = std::stoll(value);
  }
  return kind;
}
inline model_ref net_of(const std::string& name, shape3 shape, std::int64_t classes, const model_keys& chosen = {}) {
  return kind_with(name, chosen)->build(shape, classes).value();
}
inline model_ref mlp_of(std::vector<std::int64_t> hidden, std::int64_t inputs, std::int64_t classes) {
  const auto kind = kind_of("mlp");
  key_table keys;
  kind->keys(keys);
  *std::get<std::vector<std::int64_t>*>(keys.find("hidden")->target) = std::move(hidden);
  return kind->build({1, 1, inputs}, classes).value();
}
/// Net of six classes whose head has hidden layers of these widths.
inline model_ref net_with_head(const std::string& name, shape3 shape, std::vector<std::int64_t> hidden) {
  const auto kind = kind_of(name);
  key_table keys;
  kind->keys(keys);
  *std::get<std::vector<std::int64_t>*>(keys.find("head_hidden")->target) = std::move(hidden);
  return kind->build(shape, 6).value();
}

} // namespace mneme::test
