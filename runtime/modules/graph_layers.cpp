#include "runtime/modules/graph_layers.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/modules/layer_text.hpp"
#include "runtime/modules/token_patterns.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
namespace mneme {
namespace {

using texts = std::vector<std::string>;

constexpr std::size_t operators_max = 2000; // limits the depth of recursion over residual sums

/// The layers that compute one or several calls, and the slot that they read.
struct step {
  texts layers{};
  std::int32_t from = -1;
  std::optional<graph_segment> segment{}; ///< Set if no layer computes the call.
};

/// True if one of mneme's layers among them has parameters.
bool any_has_weights(const texts& layers) { return std::any_of(layers.begin(), layers.end(), has_weights); }

step step_of(const graph_segment& segment) {
  return {.layers = {segment.text()}, .from = segment.from, .segment = segment};
}

/// Follows the program from its result to its rows.
class graph_walk {
public:
  graph_walk(const graph_view& graph, const translation_options& options) : graph_(graph), options_(options) {
    if (options_.partly)
      flow_.emplace(graph);
  }

  graph_layers translate() {
    const auto& program = graph_.program();
    made_.operators = static_cast<std::size_t>(std::count_if(
        program.calls.begin(), program.calls.end(), [](const exported_call& call) { return call.op.has_value(); }));
    if (program.calls.size() > operators_max) {
      made_.unmatched.push_back(fmt::format("the program has more than {} operators", operators_max));
      return std::move(made_);
    }
    if (options_.partly && options_.scores)
      require_head(program.result_slot);
    made_.layers = between(program.rows_slot, program.result_slot);
    for (const auto& text : made_.layers)
      if (const auto segment = segments_.find(text); segment != segments_.end())
        made_.segments.push_back(segment->second);
    add_frozen();
    return std::move(made_);
  }

private:
  void record(std::int32_t slot, const std::string& reason) {
    const auto* const call = graph_.producer(slot);
    const auto* const held = graph_.held(slot);
    const auto place = call ? call->place : held ? held->name : std::string("the rows");
    const auto text = fmt::format("{}: {}", place, reason);
    if (std::find(made_.unmatched.begin(), made_.unmatched.end(), text) == made_.unmatched.end())
      made_.unmatched.push_back(text);
  }

  /// The layers that follow `first`, up to the call that computes `last`.
  texts between(std::int32_t first, std::int32_t last) {
    std::vector<step> steps;
    for (; last != first && last != graph_.program().rows_slot; last = steps.back().from)
      steps.push_back(step_at(last));
    join_segments(steps);
    texts layers;
    for (auto each = steps.rbegin(); each != steps.rend(); ++each)
      layers.insert(layers.end(), each->layers.begin(), each->layers.end());
    return layers;
  }

  /// Records a call that cannot be translated, and continues with its first input to find all such calls.
  const step& step_at(std::int32_t slot) {
    if (const auto known = steps_.find(slot); known != steps_.end())
      return known->second;
    step made;
    auto error = exception_message_of([&] { made = is_sum(slot) ? sum(slot) : single(slot); });
    if (error.empty() && flow_ && made.from >= 0 && !flow_->is_layer_value(made.from))
      error = "its input is no value that a layer returns";
    if (!error.empty()) {
      record(slot, error);
      const auto* const call = graph_.producer(slot);
      made = flow_ ? segment_step(slot) : step{.from = call ? graph_.first_slot(*call) : -1};
    }
    if (made.from < 0) // the value does not depend on the rows, so the walk ends
      made.from = graph_.program().rows_slot;
    return steps_.emplace(slot, std::move(made)).first->second;
  }

  step segment_step(std::int32_t slot) { return step_of(known({.from = flow_->before(slot), .to = slot})); }

  const graph_segment& known(const graph_segment& segment) {
    return segments_.emplace(segment.text(), segment).first->second;
  }

  /// Joins segments between which there are no layers with weights. @param steps the last layer first
  void join_segments(std::vector<step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      auto last = i;
      for (auto j = i + 1; steps[i].segment && j < steps.size() && !any_has_weights(steps[j].layers); ++j)
        last = steps[j].segment ? j : last;
      if (last == i)
        continue;
      steps[i] = step_of(known({.from = steps[last].from, .to = steps[i].segment->to}));
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  steps.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    }
  }

  /// Makes the last operator a segment unless it is a linear layer with a bias, which becomes the head.
  void require_head(std::int32_t result) {
    const auto& last = step_at(result);
    const bool is_head = last.layers.size() == 1 && last.layers[0].find(": linear ") != std::string::npos &&
                         !last.layers[0].ends_with(" no-bias");
    if (is_head || last.segment)
      return;
    record(result, "the result is of no linear layer with a bias");
    steps_[result] = segment_step(result);
  }

  [[nodiscard]] bool is_sum(std::int32_t slot) const {
    const auto* const call = graph_.producer(slot);
    return call && call->op && plain_name(*call) == "add";
  }

  step single(std::int32_t slot) {
    if (auto attention = attention_pattern(graph_, slot, options_.training))
      return layer(*attention);
    return layer(layer_of_call(graph_, slot, options_.training));
  }

  step layer(const layer_text& made) {
    const auto add_owner = [&](const std::string& name) {
      if (!name.empty() && !owners_.insert(name).second)
        throw no_layer(fmt::format("'{}' is used twice; expected layers with weights of their own", name));
    };
    add_owner(made.name);
    made_.renamed.insert(made.renamed.begin(), made.renamed.end());
    fixed_.insert(made.fixed.begin(), made.fixed.end());
    return {.layers = made.text.empty() ? texts{} : texts{made.whole()}, .from = made.input};
  }

  step sum(std::int32_t slot) {
    const auto& call = *graph_.producer(slot);
    if (graph_.number(call, "alpha", 1.0) != 1.0)
      throw no_layer("a sum with alpha; expected a plain sum");
    if (const auto patches = patch_embedding_pattern(graph_, slot))
      return layer(*patches);
    if (const auto positions = positions_pattern(graph_, slot))
      return layer(*positions);
    const auto left = graph_.slot(call, "self"), right = graph_.slot(call, "other");
    if (left < 0 || right < 0)
      throw no_layer("a sum with a number; expected two branches");
    return block(slot, left, right);
  }

  /// Makes a residual block of two branches that begin at the same value; a segment if no layer in it has weights.
  step block(std::int32_t slot, std::int32_t left, std::int32_t right) {
    const auto of_right = chain_of(right);
    const std::set<std::int32_t> ancestors(of_right.begin(), of_right.end());
    const auto of_left = chain_of(left);
    const auto start =
        std::find_if(of_left.begin(), of_left.end(), [&](std::int32_t slot) { return ancestors.contains(slot); });
    if (start == of_left.end())
      throw no_layer("a sum of branches that do not begin at one value");
    auto body = between(*start, left), shortcut = between(*start, right);
    if (body.empty())
      std::swap(body, shortcut);
    if (body.empty())
      throw no_layer("a sum of a value with itself");
    texts layers{"residual ["};
    layers.insert(layers.end(), body.begin(), body.end());
    if (!shortcut.empty()) {
      layers.emplace_back("] shortcut [");
      layers.insert(layers.end(), shortcut.begin(), shortcut.end());
    }
    layers.emplace_back("]");
    const bool has_segment =
        std::any_of(layers.begin(), layers.end(), [&](const std::string& text) { return segments_.contains(text); });
    if (has_segment && !any_has_weights(layers)) // one segment costs less than several
      return step_of(known({.from = *start, .to = slot}));
    if (layers.size() > 4 * graph_.program().calls.size()) // otherwise shared parts would grow without bound
      throw no_layer("a sum of branches that share layers");
    return {.layers = std::move(layers), .from = *start};
  }

  /// The slot and its predecessors back to the rows; a block is represented by the value at which its branches begin.
  std::vector<std::int32_t> chain_of(std::int32_t slot) {
    std::vector<std::int32_t> chain{slot};
    while (slot != graph_.program().rows_slot)
      chain.push_back(slot = step_at(slot).from);
    return chain;
  }

  void add_frozen() {
    for (const auto& tensor : graph_.program().tensors)
      if (tensor.parameter && !tensor.trains)
        made_.frozen.push_back(tensor.name);
    for (const auto& tensor : graph_.program().tensors)
      if (fixed_.contains(tensor.name))
        made_.frozen.push_back(tensor.name);
  }

  const graph_view& graph_;
  translation_options options_;
  std::optional<row_flow> flow_; ///< Set with translation_options::partly.
  graph_layers made_;
  std::map<std::string, graph_segment> segments_; ///< Keyed by graph_segment::text().
  std::map<std::int32_t, step> steps_;
  std::set<std::string> owners_; ///< Names of layers.
  std::set<std::string> fixed_;  ///< Running statistics that training does not change.
};

} // namespace

graph_layers translate_graph(const exported_program& program, const std::vector<std::vector<std::int64_t>>& sizes,
                             const translation_options& options) {
  const graph_view graph(program, sizes);
  auto made = graph_walk(graph, options).translate();
  if (made.is_whole() || options.partly)
    made.layers = first_token_only(made.layers);
  return made;
}

} // namespace mneme
