#include "runtime/models/prompted_vit.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <sstream>
namespace mneme {

std::string prompt_shape::text() const {
  std::ostringstream text;
  const auto list = [&](const char* word, const std::vector<std::int64_t>& numbers) {
    text << word;
    for (const auto number : numbers)
      text << " " << number;
  };
  if (form == prompt_form::low_rank) {
    text << "low rank " << rank;
    list(" in", blocks);
    return text.str();
  }
  if (form == prompt_form::components)
    text << "components " << of_task << (softmax_focus ? " softmax" : "");
  else
    text << "slots" << (all_slots ? " all" : "");
  text << " length " << length;
  list(" in", blocks);
  if (!general.empty()) {
    text << " general " << general_length;
    list(" in", general);
  }
  return text.str();
}

prompted_vit::prompted_vit(vit_shape shape, prompt_shape prompts, const std::vector<parameter>& body,
                           std::vector<class_range> tasks, std::int64_t classes)
    : frozen_vit(shape, body, classes), prompts_(std::move(prompts)), tasks_(std::move(tasks)) {
  MNEME_CHECK(!tasks_.empty());
  add_pools();
  const auto bound = 1.0 / std::sqrt(static_cast<double>(shape.width));
  head_ = add_parameter({.name = "head.weight", .shape = {classes, shape.width}, .head = true, .bound = bound});
  add_parameter({.name = "head.bias", .shape = {classes}, .head = true, .bound = bound});
}

/// Initial values are zeros; the method's server replaces them. A component of zeros has no weight in a prompt.
void prompted_vit::add_pools() {
  const auto d = shape().width;
  const bool sums = prompts_.form == prompt_form::components;
  const auto count = sums ? tasks() * prompts_.of_task : tasks();
  for (const auto block : prompts_.general)
    general_.push_back(add_parameter(
        {.name = "prompts." + std::to_string(block) + ".general", .shape = {prompts_.general_length, d}}));
  for (const auto block : prompts_.blocks) {
    const auto name = "prompts." + std::to_string(block);
    auto& own = pools_.emplace_back();
    own.values = add_parameter({.name = name + ".values", .shape = {count, prompts_.length, d}});
    own.keys = add_parameter({.name = name + ".keys", .shape = {count, d}});
    if (sums)
      own.focus = add_parameter({.name = name + ".focus", .shape = {count, d}});
  }
}

std::string prompted_vit::identity() const {
  std::ostringstream text;
  const auto& in = shape().input;
  text << "prompted vit " << in[0] << "x" << in[1] << "x" << in[2] << "-" << classes() << " " << shape().text() << " "
       << prompts_.text() << " tasks";
  for (const auto& task : tasks_)
    text << " " << task.low << "-" << task.high;
  return text.str();
}

std::vector<std::string> prompted_vit::maps() const {
  return {prompts_.form == prompt_form::components ? "penalty" : "match"};
}

std::int64_t prompted_vit::task_of(class_range classes) const {
  for (std::int64_t k = 0; classes.size() > 0 && k < tasks(); ++k)
    if (classes.high <= tasks_[static_cast<std::size_t>(k)].high)
      return k;
  return tasks() - 1;
}

} // namespace mneme
