// arrays: user data in arrays that NumPy or PyTorch saved. The arrays contain images, rows of numbers (embeddings,
// tables) or tokens, with labels and optional domains.
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/user_rows.hpp"
#include "runtime/formats/array_file.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <type_traits>
namespace mneme {
namespace {

// Shapes: N rows, C channels, H height, W width, F numbers of a row, T tokens of a row.

using std::filesystem::path;

constexpr std::int64_t own_tokens_max = 16'777'216; // limit, because nets receive tokens as float32
constexpr std::int64_t own_domains_max = 10'000;

/// Collects diagnostics up to a limit.
class array_findings {
public:
  void add(const std::string& place, std::string text) {
    if (findings_.size() < own_diagnostics_max)
      findings_.push_back({place, std::move(text)});
  }
  void add(diagnostics more) {
    for (auto& finding : more)
      add(finding.where, std::move(finding.text));
  }
  [[nodiscard]] bool empty() const noexcept { return findings_.empty(); }
  [[nodiscard]] diagnostics take() { return std::move(findings_); }

private:
  diagnostics findings_;
};

/// The values of an integer array, and the index of the first value that is not an integer.
struct whole_numbers {
  std::vector<std::int64_t> values{};
  std::int64_t odd_place = -1; ///< -1 if all values are integers.
  std::string odd_value{};
};

template <class Stored>
whole_numbers widened(const at::Tensor& values) {
  const auto* const first = static_cast<const Stored*>(values.const_data_ptr());
  whole_numbers numbers;
  numbers.values.reserve(static_cast<std::size_t>(values.numel()));
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    constexpr double limit = 9007199254740992.0; // 2^53; doubles represent all smaller integers exactly
    if constexpr (std::is_floating_point_v<Stored>) {
      const auto value = static_cast<double>(first[i]);
      const bool is_whole = std::abs(value) < limit && value == std::floor(value); // false for NaN
      if (!is_whole && numbers.odd_place < 0) {
        numbers.odd_place = i;
        numbers.odd_value = fmt::format("{}", value);
      }
      numbers.values.push_back(is_whole ? static_cast<std::int64_t>(value) : 0);
    } else if constexpr (std::is_same_v<Stored, std::uint64_t>) {
      constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max(); // the largest value exceeds every bound
      numbers.values.push_back(static_cast<std::int64_t>(std::min(first[i], most)));
    } else {
      numbers.values.push_back(static_cast<std::int64_t>(first[i]));
    }
  }
  return numbers;
}

/// Converts an array of integers, booleans (false: 0, true: 1) or floats. Returns nullopt for other types.
std::optional<whole_numbers> whole_numbers_of(const at::Tensor& values) {
  switch (values.scalar_type()) {
  case at::kBool:
    return widened<std::uint8_t>(values.ne(0).to(at::kByte));
  case at::kByte:
    return widened<std::uint8_t>(values);
  case at::kChar:
    return widened<std::int8_t>(values);
  case at::kShort:
    return widened<std::int16_t>(values);
  case at::kUInt16:
    return widened<std::uint16_t>(values);
  case at::kInt:
    return widened<std::int32_t>(values);
  case at::kUInt32:
    return widened<std::uint32_t>(values);
  case at::kLong:
    return widened<std::int64_t>(values);
  case at::kUInt64:
    return widened<std::uint64_t>(values);
  case at::kHalf:
  case at::kBFloat16:
    return widened<float>(values.to(at::kFloat));
  case at::kFloat:
    return widened<float>(values);
  case at::kDouble:
    return widened<double>(values);
  default:
    return std::nullopt;
  }
}

std::string type_of(const named_array& array) {
  return array.content.values.defined() ? numpy_word(array.content.values.scalar_type()) : "text";
}

std::string shape_of(const at::Tensor& values) { return fmt::format("[{}]", fmt::join(values.sizes(), ", ")); }

/// Reads labels or domains in [0, below), one for each of `rows` rows. Reports invalid ones.
std::vector<std::int32_t> numbers_from(const named_array& array, std::int64_t rows, std::int64_t below,
                                       const char* noun, array_findings& errors) {
  const auto& values = array.content.values;
  const auto numbers = values.defined() ? whole_numbers_of(values) : std::nullopt;
  if (!numbers) {
    errors.add(array.place, fmt::format("the dtype is {}; expected whole numbers, as int64", type_of(array)));
    return {};
  }
  if (values.dim() != 1 || values.size(0) != rows) {
    errors.add(array.place,
               fmt::format("the shape is {}; expected [{}], a {} for each row", shape_of(values), rows, noun));
    return {};
  }
  if (numbers->odd_place >= 0) {
    errors.add(array.place, fmt::format("row {} has the {} {}; expected a whole number", numbers->odd_place, noun,
                                        numbers->odd_value));
    return {};
  }
  std::vector<std::int32_t> kept;
  kept.reserve(numbers->values.size());
  for (std::size_t row = 0; row < numbers->values.size(); ++row) {
    const auto number = numbers->values[row];
    if (number < 0 || number >= below)
      errors.add(array.place, fmt::format("row {} has the {} {}; expected 0 to {}", row, noun, number, below - 1));
    kept.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(number, 0, below - 1)));
  }
  return kept;
}

/// Converts images to [N, C, H, W]. Returns an error text if the shape is invalid.
tl::expected<at::Tensor, std::string> with_channels_first(const at::Tensor& images, array_layout layout) {
  const auto is_color = [](std::int64_t extent) { return extent == 1 || extent == 3; };
  const bool first = is_color(images.size(1)), last = is_color(images.size(3));
  if (layout == array_layout::automatic && first == last)
    return tl::unexpected(
        fmt::format("the channel axis of shape {} is ambiguous: {} of the second and the last is 1 or 3; expected "
                    "data.layout = \"channels-first\" ([N, C, H, W]) or \"channels-last\" ([N, H, W, C])",
                    shape_of(images), first ? "each" : "neither"));
  const bool moves = layout == array_layout::channels_last || (layout == array_layout::automatic && last);
  return moves ? images.permute({0, 3, 1, 2}).contiguous() : images;
}

void check_finite(const named_array& array, array_findings& errors) {
  const auto& values = array.content.values;
  const auto width = values.numel() / values.size(0);
  const auto* at = values.const_data_ptr<float>();
  for (std::int64_t row = 0; row < values.size(0); ++row, at += width) {
    note_mapped_reads(static_cast<std::uint64_t>(width) * sizeof(float));
    if (const auto* const odd = std::find_if(at, at + width, [](float value) { return !std::isfinite(value); });
        odd != at + width)
      errors.add(array.place, fmt::format("row {} has a value that is {}; expected finite values", row, *odd));
  }
}

/// Reads tokens as [N, 1, 1, T] int32 and updates `largest`. Reports tokens outside of [0, below).
at::Tensor tokens_from(const named_array& array, std::int64_t below, std::int64_t& largest, array_findings& errors) {
  const auto& values = array.content.values;
  const auto numbers = whole_numbers_of(values).value().values;
  const auto width = values.size(1);
  auto kept = new_tensor({values.size(0), 1, 1, width}, at::kInt);
  auto* const to = kept.mutable_data_ptr<std::int32_t>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= below)
      errors.add(array.place, fmt::format("row {} has the token {}; expected 0 to {}",
                                          static_cast<std::int64_t>(i) / width, numbers[i], below - 1));
    else
      largest = std::max(largest, numbers[i]);
    to[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(numbers[i], 0, below - 1));
  }
  return kept;
}

/// Reads and checks the arrays of one part.
class array_reader {
public:
  array_reader(const named_arrays& arrays, const data_section& data) : arrays_(arrays), data_(data) {}

  image_table part(const std::string& split) {
    image_table table;
    const auto *x = find(split + "_x"), *y = find(split + "_y"), *domain = find(split + "_domain");
    if (!x && !y && !domain && split == "test")
      return table;
    for (const auto& [array, name] : {std::pair{x, "_x"}, std::pair{y, "_y"}})
      if (!array)
        errors.add(data_.file.string(), fmt::format("has no array '{}{}'; expected train_x and train_y, and test_x and "
                                                    "test_y where there are test rows",
                                                    split, name));
    if (!x || !y)
      return table;
    table.images = rows_from(*x);
    if (!table.images.defined())
      return table;
    const auto rows = table.images.size(0);
    table.labels = numbers_from(*y, rows, label_bound(), "label", errors);
    if (domain)
      table.domains = numbers_from(*domain, rows, domain_bound(), "domain", errors);
    return table;
  }
  [[nodiscard]] const named_array* find(const std::string& name) const {
    const auto entry = arrays_.find(name);
    return entry == arrays_.end() ? nullptr : &entry->second;
  }
  std::vector<std::string> names(const std::string& name) {
    const auto* const array = find(name);
    if (!array)
      return {};
    if (array->content.texts.empty())
      errors.add(array->place, fmt::format("the dtype is {}; expected texts", type_of(*array)));
    else
      errors.add(validate_names(array->content.texts, array->place));
    return array->content.texts;
  }
  [[nodiscard]] std::int64_t tokens() const {
    return largest_token_ < 0 ? 0 : std::max(data_.tokens, largest_token_ + 1);
  }

  array_findings errors;

private:
  [[nodiscard]] std::int64_t bound(const char* name, std::int64_t otherwise) const {
    const auto* const array = find(name);
    return array && !array->content.texts.empty() ? std::ssize(array->content.texts) : otherwise;
  }
  [[nodiscard]] std::int64_t label_bound() const { return bound("class_names", own_classes_max); }
  [[nodiscard]] std::int64_t domain_bound() const { return bound("domain_names", own_domains_max); }

  /// Returns the rows as in image_table, or an undefined tensor if they are invalid.
  at::Tensor rows_from(const named_array& array) {
    const auto& values = array.content.values;
    const auto refuse = [&](std::string text) {
      errors.add(array.place, std::move(text));
      return at::Tensor();
    };
    if (!values.defined())
      return refuse("holds texts; expected numbers");
    const auto type = values.scalar_type();
    const bool holds_tokens = type == at::kLong || type == at::kInt;
    if (!holds_tokens && type != at::kByte && type != at::kFloat)
      return refuse(
          fmt::format("the dtype is {}; expected uint8 (images), float32 (numbers) or int64 (tokens): convert "
                      "it before it is saved, as with x.astype('float32')",
                      type_of(array)));
    const auto axes = values.dim();
    if (axes < 2 || axes > (holds_tokens ? 2 : 4) || values.numel() == 0)
      return refuse(fmt::format("the shape is {}; expected {}", shape_of(values),
                                holds_tokens
                                    ? "[N, T], rows of tokens"
                                    : "[N, C, H, W] or [N, H, W, C] of images, [N, H, W] of grey ones, or [N, F] "
                                      "of rows"));
    if (holds_tokens)
      return tokens_from(array, data_.tokens > 0 ? data_.tokens : own_tokens_max, largest_token_, errors);
    if (type == at::kFloat)
      check_finite(array, errors);
    if (axes < 4)
      return axes == 3 ? values.unsqueeze(1) : values.unsqueeze(1).unsqueeze(1);
    auto images = with_channels_first(values, data_.layout);
    return images ? *images : refuse(images.error());
  }

  const named_arrays& arrays_;
  const data_section& data_;
  std::int64_t largest_token_ = -1;
};

/// Checks that both parts have rows of the same kind and shape.
void check_alike(const image_table& train, const image_table& test, const named_array& of_test,
                 array_findings& errors) {
  const auto &first = train.images, &second = test.images;
  if (first.scalar_type() != second.scalar_type())
    errors.add(of_test.place, fmt::format("the dtype is {}, and that of train_x {}; expected the same",
                                          numpy_word(second.scalar_type()), numpy_word(first.scalar_type())));
  else if (first.sizes().slice(1) != second.sizes().slice(1))
    errors.add(of_test.place,
               fmt::format("rows have the shape [{}] (channels, height, width), and those of train_x [{}]; "
                           "expected the same",
                           fmt::join(second.sizes().slice(1), ", "), fmt::join(first.sizes().slice(1), ", ")));
  if (train.domains.empty() != test.domains.empty())
    errors.add(of_test.place, "train_domain and test_domain belong together; expected both or neither");
}

std::int64_t count_of(const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& second) {
  std::int32_t largest = -1;
  for (const auto* numbers : {&first, &second})
    for (const auto number : *numbers)
      largest = std::max(largest, number);
  return std::int64_t{largest} + 1;
}

expected<raw_data> load_arrays(const data_section& data, std::uint64_t seed) {
  if (data.file.empty())
    return failed("data.file",
                  "names no file; expected data.file = \"rows.npz\": .npz or .safetensors with train_x, train_y, "
                  "test_x and test_y, or a train_x.npy in a folder with train_y.npy and the others");
  const auto arrays = read_array_file(data.file, array_names());
  if (!arrays)
    return tl::unexpected(arrays.error());
  array_reader reader(*arrays, data);
  user_classes classes{.where = data.file.string(), .names = reader.names("class_names")};
  classes.domains = reader.names("domain_names");
  auto train = reader.part("train"), test = reader.part("test");
  if (train.images.defined() && test.images.defined())
    check_alike(train, test, *reader.find("test_x"), reader.errors);
  if (train.domains.empty() && !classes.domains.empty())
    reader.errors.add(reader.find("domain_names")->place,
                      "names domains, but rows have none; expected train_domain, too");
  if (!reader.errors.empty())
    return tl::unexpected(reader.errors.take());
  classes.count = std::max(count_of(train.labels, test.labels), std::ssize(classes.names));
  const auto domains = count_of(train.domains, test.domains);
  for (auto number = std::ssize(classes.domains); number < domains; ++number)
    classes.domains.push_back(fmt::format("{}", number));
  return assemble_rows(std::move(train), std::move(test), classes, reader.tokens(), data, seed);
}

const source_registration arrays_line{
    {.name = "arrays",
     .summary =
         "your own arrays in data.file: .npz, .safetensors or a folder of .npy files, with train_x (uint8 images, "
         "float32 numbers or int64 tokens), train_y, test_x, test_y, and optionally train_domain, test_domain, "
         "class_names and domain_names; docs/data.md",
     .load = [](const data_section& data, const auto&, std::uint64_t seed) { return load_arrays(data, seed); },
     .has_domains = true,
     .is_own = true,
     .own_file = true}};

} // namespace
} // namespace mneme
