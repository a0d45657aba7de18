#include "runtime/storage/weight_names.hpp"
#include <ATen/ops/cat.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
namespace mneme {
namespace {

using name_pair = std::pair<std::string_view, std::string_view>;

/// Names of layers and tensors of a vision transformer in other programs, paired with timm's names. # is the number of
/// a block.
constexpr std::array vit_names{
    // transformers' ViT, with the names in its files and in its modules
    name_pair{"embeddings.cls_token", "cls_token"},
    name_pair{"embeddings.position_embeddings", "pos_embed"},
    name_pair{"embeddings.patch_embeddings.projection", "patch_embed.proj"},
    name_pair{"encoder.layer.#.attention.attention.query", "blocks.#.attn.query"},
    name_pair{"encoder.layer.#.attention.attention.key", "blocks.#.attn.key"},
    name_pair{"encoder.layer.#.attention.attention.value", "blocks.#.attn.value"},
    name_pair{"encoder.layer.#.attention.output.dense", "blocks.#.attn.proj"},
    name_pair{"encoder.layer.#.intermediate.dense", "blocks.#.mlp.fc1"},
    name_pair{"encoder.layer.#.output.dense", "blocks.#.mlp.fc2"},
    name_pair{"encoder.layer.#.layernorm_before", "blocks.#.norm1"},
    name_pair{"encoder.layer.#.layernorm_after", "blocks.#.norm2"},
    name_pair{"layers.#.attention.q_proj", "blocks.#.attn.query"},
    name_pair{"layers.#.attention.k_proj", "blocks.#.attn.key"},
    name_pair{"layers.#.attention.v_proj", "blocks.#.attn.value"},
    name_pair{"layers.#.attention.o_proj", "blocks.#.attn.proj"},
    name_pair{"layers.#.mlp.fc1", "blocks.#.mlp.fc1"},
    name_pair{"layers.#.mlp.fc2", "blocks.#.mlp.fc2"},
    name_pair{"layers.#.layernorm_before", "blocks.#.norm1"},
    name_pair{"layers.#.layernorm_after", "blocks.#.norm2"},
    name_pair{"layernorm", "norm"},
    name_pair{"classifier", "head"},
    // transformers' CLIP
    name_pair{"embeddings.class_embedding", "cls_token"},
    name_pair{"embeddings.patch_embedding", "patch_embed.proj"},
    name_pair{"embeddings.position_embedding.weight", "pos_embed"},
    name_pair{"pre_layrnorm", "norm_pre"}, // transformers' spelling
    name_pair{"encoder.layers.#.self_attn.q_proj", "blocks.#.attn.query"},
    name_pair{"encoder.layers.#.self_attn.k_proj", "blocks.#.attn.key"},
    name_pair{"encoder.layers.#.self_attn.v_proj", "blocks.#.attn.value"},
    name_pair{"encoder.layers.#.self_attn.out_proj", "blocks.#.attn.proj"},
    name_pair{"encoder.layers.#.layer_norm1", "blocks.#.norm1"},
    name_pair{"encoder.layers.#.layer_norm2", "blocks.#.norm2"},
    name_pair{"encoder.layers.#.mlp.fc1", "blocks.#.mlp.fc1"},
    name_pair{"encoder.layers.#.mlp.fc2", "blocks.#.mlp.fc2"},
    name_pair{"post_layernorm", "norm"},
    // torchvision
    name_pair{"class_token", "cls_token"},
    name_pair{"encoder.pos_embedding", "pos_embed"},
    name_pair{"conv_proj", "patch_embed.proj"},
    name_pair{"encoder.layers.encoder_layer_#.ln_1", "blocks.#.norm1"},
    name_pair{"encoder.layers.encoder_layer_#.ln_2", "blocks.#.norm2"},
    name_pair{"encoder.layers.encoder_layer_#.self_attention.in_proj_weight", "blocks.#.attn.qkv.weight"},
    name_pair{"encoder.layers.encoder_layer_#.self_attention.in_proj_bias", "blocks.#.attn.qkv.bias"},
    name_pair{"encoder.layers.encoder_layer_#.self_attention.out_proj", "blocks.#.attn.proj"},
    name_pair{"encoder.layers.encoder_layer_#.mlp.0", "blocks.#.mlp.fc1"},
    name_pair{"encoder.layers.encoder_layer_#.mlp.3", "blocks.#.mlp.fc2"},
    name_pair{"encoder.ln", "norm"},
    name_pair{"heads.head", "head"},
    // official code of AdaptFormer and STSA
    name_pair{"blocks.#.adaptmlp.down_proj", "blocks.#.adapter.down"},
    name_pair{"blocks.#.adaptmlp.up_proj", "blocks.#.adapter.up"},
};

constexpr std::array vit_prefixes{std::string_view{"vit."}, std::string_view{"vision_model."}};
constexpr std::array vit_left_out{std::string_view{"pooler."}, std::string_view{"text_model."},
                                  std::string_view{"text_projection."}, std::string_view{"visual_projection."},
                                  std::string_view{"logit_scale"}};
constexpr std::array bert_left_out{std::string_view{"cls."}};

bool has_parameter(const model& net, std::string_view name) {
  const auto& layout = net.layout();
  return std::any_of(layout.begin(), layout.end(), [&](const parameter& entry) { return entry.name == name; });
}

template <class Names>
bool begins_with_one_of(std::string_view name, const Names& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

/// Returns `name` with its first number replaced by #, and the number; "" if it has no number.
std::pair<std::string, std::string> without_number(const std::string& name) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  for (auto first = name.begin(); first != name.end(); ++first)
    if (is_digit(static_cast<unsigned char>(*first)) && first != name.begin() &&
        (*(first - 1) == '.' || *(first - 1) == '_')) {
      const auto last = std::find_if_not(first, name.end(), is_digit);
      if (last != name.end() && *last != '.')
        continue;
      return {std::string(name.begin(), first) + "#" + std::string(last, name.end()), std::string(first, last)};
    }
  return {name, ""};
}

/// timm's name of a tensor; nullopt if the table does not have it.
std::optional<std::string> timm_name(const std::string& name) {
  const auto [pattern, number] = without_number(name);
  for (const auto& [theirs, ours] : vit_names) {
    if (!pattern.starts_with(theirs) || (pattern.size() > theirs.size() && pattern[theirs.size()] != '.'))
      continue;
    auto result = std::string(ours);
    if (const auto at = result.find('#'); at != std::string::npos)
      result.replace(at, 1, number);
    return result + pattern.substr(theirs.size());
  }
  return std::nullopt;
}

/// The net's name for a tensor of a vision transformer; "" if the net does not use it.
std::string vit_name(std::string name) {
  for (const auto prefix : vit_prefixes)
    if (name.starts_with(prefix))
      name.erase(0, prefix.size());
  if (begins_with_one_of(name, vit_left_out) || name.ends_with(".position_ids"))
    return "";
  return timm_name(name).value_or(name);
}

/// The net's name for a tensor of BERT; "" if the net does not use it.
std::string bert_name(std::string name) {
  if (begins_with_one_of(name, bert_left_out) || name.ends_with(".position_ids"))
    return "";
  if (begins_with_one_of(name, std::array{std::string_view{"embeddings."}, std::string_view{"encoder."},
                                          std::string_view{"pooler."}})) // the file may be one of BertModel
    name.insert(0, "bert.");
  for (const auto& [old, present] : {name_pair{".gamma", ".weight"}, name_pair{".beta", ".bias"}})
    if (name.ends_with(old))
      name.replace(name.size() - old.size(), old.size(), present);
  return name;
}

/// Name of a tensor without the prefix and the infixes that peft adds.
std::string without_peft(std::string name) {
  if (constexpr std::string_view prefix = "base_model.model."; name.starts_with(prefix))
    name.erase(0, prefix.size());
  for (const std::string_view infix : {".base_layer.", ".default.", ".modules_to_save."})
    if (const auto at = name.find(infix); at != std::string::npos)
      name.replace(at, infix.size(), ".");
  return name;
}

/// Joins the matrices and biases of query, key and value into the matrix and bias of attn.qkv.
void join_attention(tensor_map& tensors) {
  std::map<std::string, std::array<at::Tensor, 3>> joined; // keyed by the name in the net
  tensor_map others;
  for (const auto& [name, value] : tensors) {
    std::size_t i = 0;
    for (const std::string_view matrix : {".attn.query.", ".attn.key.", ".attn.value."}) {
      const auto at = name.find(matrix);
      if (at != std::string::npos && (name.ends_with(".weight") || name.ends_with(".bias")) &&
          name.find(".lora_") == std::string::npos) {
        joined[name.substr(0, at) + ".attn.qkv." + name.substr(at + matrix.size())][i] = value;
        break;
      }
      ++i;
    }
    if (i == 3)
      others.put(name, value);
  }
  for (const auto& [name, parts] : joined)
    if (parts[0].defined() && parts[1].defined() && parts[2].defined() &&
        parts[0].sizes().slice(1) == parts[1].sizes().slice(1) &&
        parts[0].sizes().slice(1) == parts[2].sizes().slice(1))
      others.put(name, at::cat({parts[0], parts[1], parts[2]}));
  tensors = std::move(others);
}

/// Adds the leading axes of size 1 that the net's parameter has.
at::Tensor with_leading_axes(const model& net, const std::string& name, const at::Tensor& value) {
  for (const auto& entry : net.layout())
    if (entry.name == name && value.dim() < std::ssize(entry.shape)) {
      const auto added = entry.shape.size() - static_cast<std::size_t>(value.dim());
      const at::IntArrayRef shape(entry.shape);
      if (shape.slice(added) == value.sizes() &&
          std::all_of(shape.begin(), shape.begin() + added, [](std::int64_t size) { return size == 1; }))
        return value.reshape(shape);
    }
  return value;
}

} // namespace

tensor_map with_net_names(const model& net, const tensor_map& in_file, const std::string& file, diagnostics& errors) {
  const bool is_vit = has_parameter(net, "cls_token"),
             is_bert = has_parameter(net, "bert.embeddings.word_embeddings.weight");
  if (!is_vit && !is_bert)
    return in_file;
  tensor_map result;
  for (const auto& [name, value] : in_file) {
    auto own = without_peft(name);
    if (!has_parameter(net, own))
      own = is_vit ? vit_name(own) : bert_name(own);
    if (own.empty())
      continue;
    if (result.find(own) || (own != name && in_file.find(own)))
      errors.push_back({file, "tensor '" + own + "' occurs a second time, as '" + name + "'; remove one"});
    else
      result.put(own, with_leading_axes(net, own, value));
  }
  if (is_vit)
    join_attention(result);
  return result;
}

} // namespace mneme
