/// pickle_limits: what a pickle of an archive may ask its reader for.
#pragma once
#include <string>
#include <string_view>
namespace mneme {

/// What is too much in a pickle, in words; "": nothing. LibTorch takes memory for a text as long as its header says,
/// and for a table as long as the largest place that values are kept at, before it looks whether the file has them:
/// texts have to lie within the pickle, and places below its number of bytes. Instructions that TorchScript does not
/// write end the look; LibTorch refuses them by itself.
[[nodiscard]] std::string pickle_excess(std::string_view pickle);

} // namespace mneme
