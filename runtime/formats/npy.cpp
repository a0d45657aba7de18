#include "runtime/formats/npy.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <optional>
namespace mneme {
namespace {

// File layout: "\x93NUMPY"; version (2 bytes); header length (2 bytes in version 1, else 4); header, a Python
// dictionary with the keys descr, fortran_order and shape; values (see numpy/lib/format.py).

constexpr std::string_view npy_mark{"\x93NUMPY", 6};
constexpr std::size_t mark_bytes = 8;             // magic bytes and version
constexpr std::uint64_t lengths_bytes = 12;       // magic bytes, version and header length; no file is shorter
constexpr std::uint64_t npy_header_max = 1 << 20; // larger than NumPy's limit of 10,000 bytes
constexpr std::size_t axes_max = 64;

struct npy_type {
  const char* name; // name of the dtype in headers
  const char* word; // NumPy's name
  at::ScalarType type;
};
constexpr std::array<npy_type, 13> npy_types{{{"|b1", "bool", at::kBool},
                                              {"|u1", "uint8", at::kByte},
                                              {"|i1", "int8", at::kChar},
                                              {"<u2", "uint16", at::kUInt16},
                                              {"<i2", "int16", at::kShort},
                                              {"<u4", "uint32", at::kUInt32},
                                              {"<i4", "int32", at::kInt},
                                              {"<u8", "uint64", at::kUInt64},
                                              {"<i8", "int64", at::kLong},
                                              {"<f2", "float16", at::kHalf},
                                              {"<f4", "float32", at::kFloat},
                                              {"<f8", "float64", at::kDouble},
                                              {"bf16", "bfloat16", at::kBFloat16}}}; // not a dtype of NumPy

/// Parses the Python literals that occur in headers.
class literal_reader {
public:
  explicit literal_reader(std::string_view text) : text_(text) {}

  /// Skips blanks. If `word` follows, consumes it and returns true.
  bool takes(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word))
      return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> text() {
    skip_blanks();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"'))
      return std::nullopt;
    const auto end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string literal(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return literal;
  }
  std::optional<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0)
      return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    (void)takes("L"); // Python 2 adds this suffix to long integers
    return value;
  }
  /// Parses a tuple of integers: "(3, 4)", "(3,)" or "()". Returns nullopt for other texts.
  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> values;
    if (!takes("("))
      return std::nullopt;
    while (!takes(")")) {
      const auto value = number();
      if (!value || values.size() == axes_max)
        return std::nullopt;
      values.push_back(*value);
      if (!takes(",") && !(text_.starts_with(")")))
        return std::nullopt;
    }
    return values;
  }

private:
  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  std::string_view text_;
};

/// The little-endian form of a dtype: "<" replaces ">" and "=".
std::string with_low_bytes_first(std::string name) {
  if (name.starts_with('>') || name.starts_with('='))
    name.front() = '<';
  return name;
}

std::string set_type(const std::string& given, npy_header& into) {
  const auto named = with_low_bytes_first(given);
  into.high_bytes_first = given.starts_with('>');
  const auto* const known = std::find_if(npy_types.begin(), npy_types.end(), [&](const auto& entry) {
    return named == entry.name || (named.starts_with('<') && entry.name[0] == '|' && named.substr(1) == entry.name + 1);
  });
  if (known != npy_types.end()) {
    into.type = known->type;
    return {};
  }
  const bool is_text = named.size() > 2 && (named.starts_with("|S") || named.starts_with("<U"));
  std::int64_t letters = 0;
  if (is_text && std::from_chars(named.data() + 2, named.data() + named.size(), letters).ec == std::errc{} &&
      letters > 0 && letters <= 1'000'000) {
    into.holds_texts = true;
    into.wide_letters = named[1] == 'U';
    into.text_letters = letters;
    return {};
  }
  if (named == "|O")
    return "the array holds Python objects, which are not supported: save numbers, or texts of the dtype str";
  return fmt::format(
      "the dtype '{}' is not supported; expected bool, integers of 8 to 64 bits, float16, float32, float64 or texts",
      given);
}

/// Reverses the byte order of `count` items of `width` bytes each.
void swap_bytes(std::uint8_t* bytes, std::uint64_t count, std::uint64_t width) {
  for (std::uint64_t at = 0; at + width <= count; at += width)
    std::reverse(bytes + at, bytes + at + width);
}

/// Parses a header into `into`. Returns the error, or "".
std::string read_header(std::string_view text, npy_header& into) {
  literal_reader in(text);
  bool has_type = false, has_order = false, has_shape = false;
  const std::string damaged = "the header is not a dictionary of descr, fortran_order and shape; the file is damaged";
  if (!in.takes("{"))
    return damaged;
  while (!in.takes("}")) {
    const auto name = in.text();
    if (!name || !in.takes(":"))
      return damaged;
    if (*name == "descr") {
      const auto type = in.text();
      if (!type)
        return "the array has named fields; save each as a separate array";
      if (auto message = set_type(*type, into); !message.empty())
        return message;
      has_type = true;
    } else if (*name == "fortran_order") {
      into.by_columns = in.takes("True");
      if (!into.by_columns && !in.takes("False"))
        return damaged;
      has_order = true;
    } else if (*name == "shape") {
      const auto shape = in.tuple();
      if (!shape)
        return damaged;
      into.shape = *shape;
      has_shape = true;
    } else {
      return damaged;
    }
    (void)in.takes(",");
  }
  return has_type && has_order && has_shape ? std::string{} : damaged;
}

/// Size of the values in bytes. Returns nullopt if strides overflow int64.
std::optional<std::uint64_t> value_bytes(const npy_header& header) {
  std::int64_t reach = header.holds_texts ? header.text_letters * (header.wide_letters ? 4 : 1)
                                          : static_cast<std::int64_t>(c10::elementSize(header.type));
  bool is_empty = false;
  for (const auto extent : header.shape) {
    is_empty = is_empty || extent == 0;
    if (__builtin_mul_overflow(reach, std::max<std::int64_t>(extent, 1), &reach))
      return std::nullopt;
  }
  return is_empty ? 0 : static_cast<std::uint64_t>(reach);
}

void append_letter(std::string& to, std::uint32_t point) {
  const auto byte = [&](std::uint32_t value) { to += static_cast<char>(value); };
  if (point < 0x80)
    return byte(point);
  if (point > 0x10FFFF || (0xD800 <= point && point < 0xE000))
    return byte('?');
  if (point < 0x800)
    byte(0xC0 | point >> 6);
  else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
  }
  byte(0x80 | (point & 0x3F));
}

} // namespace

std::string numpy_word(at::ScalarType type) {
  const auto* const known =
      std::find_if(npy_types.begin(), npy_types.end(), [&](const auto& entry) { return entry.type == type; });
  return known == npy_types.end() ? c10::toString(type) : known->word;
}

std::optional<npy_header> npy_reader::header_of(std::span<const std::uint8_t> front, std::uint64_t bytes) {
  npy_reader reader(bytes);
  if (front.size() < lengths_bytes || bytes < lengths_bytes)
    return std::nullopt;
  reader.front_.assign(front.begin(), front.begin() + lengths_bytes);
  if (!reader.read_lengths() || reader.header_.begin > front.size())
    return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(front.data()), reader.header_.begin);
  auto& header = reader.header_;
  if (!read_header(text.substr(mark_bytes + reader.length_bytes_), header).empty())
    return std::nullopt;
  header.bytes = value_bytes(header).value_or(0);
  return header.bytes == bytes - header.begin ? std::optional(header) : std::nullopt;
}

bool npy_reader::refuse(std::string text) {
  errors_ = std::move(text);
  return false;
}

bool npy_reader::read_lengths() {
  if (!std::string_view(reinterpret_cast<const char*>(front_.data()), front_.size()).starts_with(npy_mark))
    return refuse("the array does not begin as NumPy's do; is it a .npy file?");
  const auto version = front_[6];
  if (version < 1 || version > 3)
    return refuse(fmt::format("the array has version {} of its format; expected 1 to 3", version));
  length_bytes_ = version == 1 ? 2 : 4;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes_; ++i)
    length |= std::uint64_t{front_[mark_bytes + i]} << (8 * i);
  header_.begin = mark_bytes + length_bytes_ + length;
  if (length > npy_header_max || header_.begin > bytes_ || header_.begin < front_.size())
    return refuse(
        fmt::format("the header should have {} bytes, but the array has {}; is the file truncated?", length, bytes_));
  return true;
}

bool npy_reader::begin() {
  const std::string_view front(reinterpret_cast<const char*>(front_.data()), front_.size());
  if (auto message = read_header(front.substr(mark_bytes + length_bytes_), header_); !message.empty())
    return refuse(std::move(message));
  const auto bytes = value_bytes(header_);
  if (!bytes || *bytes != bytes_ - header_.begin)
    return refuse(fmt::format("the header states {} bytes of values, and {} follow; the file is damaged or truncated",
                              bytes ? fmt::format("{}", *bytes) : "more than 2^63", bytes_ - header_.begin));
  header_.bytes = *bytes;
  auto stored = header_.shape;
  if (header_.by_columns)
    std::reverse(stored.begin(), stored.end());
  values_ = header_.holds_texts ? new_tensor({static_cast<std::int64_t>(header_.bytes)}, at::kByte)
                                : new_tensor(stored, header_.type);
  return true;
}

bool npy_reader::feed(std::span<const std::uint8_t> piece) {
  if (bytes_ < lengths_bytes)
    return refuse("the array is truncated");
  while (errors_.empty() && !values_.defined() && !piece.empty()) {
    const auto goal = header_.begin > 0 ? header_.begin : lengths_bytes;
    const auto taken = std::min<std::uint64_t>(piece.size(), goal - front_.size());
    front_.insert(front_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    piece = piece.subspan(taken);
    if (front_.size() == lengths_bytes && header_.begin == 0 && !read_lengths())
      return false;
    if (front_.size() == header_.begin && !begin())
      return false;
  }
  if (!errors_.empty() || piece.empty())
    return errors_.empty();
  if (piece.size() > header_.bytes - filled_)
    return refuse("the array is longer than its header states");
  std::memcpy(static_cast<std::uint8_t*>(values_.mutable_data_ptr()) + filled_, piece.data(), piece.size());
  filled_ += piece.size();
  return true;
}

std::vector<std::string> npy_reader::texts() const {
  const auto* const bytes = values_.const_data_ptr<std::uint8_t>();
  const std::uint64_t letter = header_.wide_letters ? 4 : 1;
  const auto text_bytes = letter * static_cast<std::uint64_t>(header_.text_letters);
  std::vector<std::string> texts;
  for (std::uint64_t at = 0; at + text_bytes <= header_.bytes; at += text_bytes) {
    std::string text;
    for (std::uint64_t i = 0; i < text_bytes; i += letter) {
      std::uint32_t point = bytes[at + i];
      if (header_.wide_letters)
        std::memcpy(&point, bytes + at + i, 4);
      if (header_.wide_letters)
        append_letter(text, point);
      else
        text += static_cast<char>(point);
    }
    text.resize(text.find_last_not_of(std::string_view("\0 ", 2)) + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

tl::expected<npy_array, std::string> npy_reader::finish() {
  if (errors_.empty() && (!values_.defined() || filled_ < header_.bytes))
    errors_ = "the array is truncated";
  if (!errors_.empty())
    return tl::unexpected(errors_);
  if (header_.high_bytes_first && header_.bytes > 0)
    swap_bytes(static_cast<std::uint8_t*>(values_.mutable_data_ptr()), header_.bytes,
               header_.holds_texts ? (header_.wide_letters ? 4 : 1) : c10::elementSize(header_.type));
  header_.high_bytes_first = false;
  if (header_.holds_texts)
    return npy_array{.texts = texts()};
  if (!header_.by_columns || header_.shape.size() < 2)
    return npy_array{.values = values_};
  std::vector<std::int64_t> axes(header_.shape.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    axes[axis] = std::ssize(axes) - 1 - static_cast<std::int64_t>(axis);
  return npy_array{.values = values_.permute(axes).contiguous()};
}

} // namespace mneme
