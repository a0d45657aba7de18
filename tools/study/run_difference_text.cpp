// Formats differences between two runs for `mneme diff` and `mneme verify`.
#include "tools/study/run_difference.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

std::string table(const std::string& title, const std::vector<differing_value>& values) {
  std::string text;
  for (const auto& value : values)
    text += fmt::format("  {}: {} | {}\n", value.name, value.first.empty() ? "-" : value.first,
                        value.second.empty() ? "-" : value.second);
  return text.empty() ? "" : title + "\n" + text;
}

std::string where_text(const first_difference& difference) {
  switch (difference.part) {
  case differing_part::delivery:
    return "other uploads, or at other times";
  case differing_part::upload:
    return fmt::format("the upload of client {} to the {}", difference.client, difference.party);
  case differing_part::model:
    return "the server's model, after uploads without a known difference";
  case differing_part::evaluation:
    return "the evaluation, of equal models";
  case differing_part::length:
    return "the number of rounds";
  }
  return {};
}

std::string element_text(const first_difference& difference) {
  if (difference.tensor.empty())
    return {};
  if (!difference.element)
    return fmt::format("  tensor {}\n", difference.tensor);
  return fmt::format("  tensor {}, element {}: {} | {} ({} elements of it differ)\n", difference.tensor,
                     difference.element->name, difference.element->first, difference.element->second,
                     difference.elements);
}

} // namespace

std::string difference_text(const run_difference& difference, const std::string& first, const std::string& second) {
  auto text = fmt::format("first   {}  {}\nsecond  {}  {}\n",
                          difference.first_digest.empty() ? "(no summary)" : difference.first_digest, first,
                          difference.second_digest.empty() ? "(no summary)" : difference.second_digest, second);
  text += table("settings that differ", difference.settings) + table("machines differ", difference.machines);
  if (difference.is_same())
    return text + "the runs are the same\n";
  if (!difference.where)
    return text + "all rounds that both have recorded are the same; the difference came after the last of them\n";
  text +=
      fmt::format("the first difference is in round {}: {}\n", difference.where->round, where_text(*difference.where));
  if (!difference.where->details.empty())
    text += "  " + difference.where->details + "\n";
  return text + element_text(*difference.where);
}

} // namespace mneme
