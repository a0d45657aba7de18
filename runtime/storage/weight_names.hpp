/// weight_names: converts the names of tensors in files of other programs to the names in mneme's nets.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

/// Returns the tensors of a file under the net's names and in the net's shapes.
///
/// For `vit` and `clip` the file may come from timm (our names), Hugging Face's transformers (ViT, and CLIP with or
/// without its text tower), torchvision (vit_b_16 and similar nets) or the official code of AdaptFormer and STSA.
/// Matrices of query, key and value become one. For `bert` the file may come from transformers. It may have any head,
/// and the names gamma and beta of old files. Low-rank adapters may have peft's prefix. Heads of other tasks, poolers
/// of a ViT, CLIP's text tower and projections are left out. Other names do not change. Two tensors with the same
/// resulting name are an error.
[[nodiscard]] tensor_map with_net_names(const model& net, const tensor_map& in_file, const std::string& file,
                                        diagnostics& errors);

} // namespace mneme
