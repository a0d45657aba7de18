/// formula: numbers that Python and C++ compute equally from a name, so that references need not store their inputs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace mneme::test {

/// Values in [-1, 1), equal to formula() in tools/research/export/torchvision_reference.py.
inline std::vector<float> formula(const std::string& name, std::int64_t count) {
  std::uint32_t hash = 0x811C9DC5;
  for (const auto byte : name)
    hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x01000193;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = hash + static_cast<std::uint32_t>(i) * 0x9E3779B1U;
    x = (x ^ x >> 16U) * 0x7FEB352DU;
    x = (x ^ x >> 15U) * 0x846CA68BU;
    x ^= x >> 16U;
    values.push_back(static_cast<float>(x >> 8U) * 0x1p-23F - 1.0F);
  }
  return values;
}

} // namespace mneme::test
