#include "runtime/base/column_names.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/lower_case.hpp"
#include <algorithm>
#include <utility>
namespace mneme::csv {
namespace {

/// The letters and digits of a name, in lower case.
std::string plain_letters(std::string_view name) {
  std::string plain;
  for (const char letter : name)
    if (letter != ' ' && letter != '_' && letter != '-' && letter != '.')
      plain += letter;
  return lower_case(plain);
}

/// True if `longer` equals `shorter` with one letter inserted.
bool has_one_letter_more(std::string_view longer, std::string_view shorter) {
  if (longer.size() != shorter.size() + 1)
    return false;
  const auto [at, other] = std::mismatch(shorter.begin(), shorter.end(), longer.begin());
  return std::equal(at, shorter.end(), other + 1);
}

/// True if swapping two neighboring letters of `a` gives `b`.
bool has_swapped_letters(std::string_view a, std::string b) {
  if (a.size() != b.size())
    return false;
  const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
  if (at + 1 >= a.size())
    return false;
  std::swap(b[at], b[at + 1]);
  return a == b;
}

bool is_spelling_of(std::string_view name, std::string_view known) {
  return name == known || has_one_letter_more(name, known) || has_one_letter_more(known, name) ||
         has_swapped_letters(name, std::string(known));
}

bool is_known_with_ending(std::string_view name, std::string_view known) {
  if (!name.starts_with(known))
    return false;
  const auto ending = name.substr(known.size());
  return ending == "id" || ending == "ids" || ending == "index" || ending == "number";
}

} // namespace

bool same_but_case(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

std::string similar_name(std::string_view name, const std::vector<std::string>& known) {
  const auto same =
      std::find_if(known.begin(), known.end(), [&](const std::string& other) { return same_but_case(other, name); });
  return same == known.end() ? closest_match(name, known) : *same;
}

std::string misspelt_name(std::string_view name, const std::vector<std::string>& known,
                          const std::vector<std::string>& absent) {
  const auto plain = plain_letters(name);
  for (const auto& other : known)
    if (name != other && is_spelling_of(plain, plain_letters(other)))
      return other;
  for (const auto& other : absent)
    if (is_known_with_ending(plain, plain_letters(other)))
      return other;
  return {};
}

} // namespace mneme::csv
