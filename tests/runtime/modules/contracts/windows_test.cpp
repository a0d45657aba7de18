#include "tests/support/operator_calls.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto huge = std::numeric_limits<std::int64_t>::max();
const auto most = std::int64_t{1} << 24;

at::Tensor images() { return at::ones({2, 4, 9, 9}); }

} // namespace

TEST_CASE("convolution strides are at most 4096") {
  const named_arguments plain{{"input", images()}, {"weight", at::ones({6, 4, 3, 3})}};
  CHECK(contract_error("aten::conv2d", plain).empty());
  CHECK(contract_error("aten::conv2d", with_argument(plain, "stride", integer_list({4096, 1}))).empty());
  CHECK(contract_error("aten::conv2d.padding", with_argument(plain, "padding", "same")).empty());
  CHECK(contract_error("aten::conv2d", with_argument(plain, "stride", integer_list({1, 65537}))) ==
        "aten::conv2d: stride is [1, 65537]; expected at most 4096");
  for (const auto* const argument : {"stride", "padding", "dilation"})
    for (const std::int64_t number : {std::int64_t{4097}, std::int64_t{1} << 30, -huge})
      CHECK_THAT(contract_error("aten::conv2d", with_argument(plain, argument, integer_list({1, number}))),
                 ContainsSubstring(std::string(argument) + " is [1, "));
  for (const auto* const name : {"aten::conv_transpose2d.input", "aten::convolution", "aten::_convolution"})
    CHECK_THAT(contract_error(name, with_argument(plain, "output_padding", integer_list({1 << 30, 0}))),
               ContainsSubstring("output_padding is [1073741824, 0]"));
  for (const auto* const name :
       {"aten::conv1d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose3d.input"})
    CHECK_THAT(contract_error(name, {{"stride", integer_list({5000})}}), ContainsSubstring("stride is [5000]"));
}

TEST_CASE("windows of pooling and im2col are at most 2^24") {
  const named_arguments plain{{"self", images()}, {"kernel_size", integer_list({2, 2})}};
  CHECK(contract_error("aten::max_pool2d", plain).empty());
  CHECK(contract_error("aten::max_pool2d", with_argument(plain, "kernel_size", integer_list({most, 1}))).empty());
  for (const auto* const argument : {"kernel_size", "stride", "padding", "dilation"})
    CHECK_THAT(contract_error("aten::max_pool1d", with_argument(plain, argument, integer_list({most + 1}))),
               ContainsSubstring(std::string(argument) + " is [16777217]; expected at most 16777216"));
  CHECK_THAT(contract_error("aten::avg_pool3d", with_argument(plain, "stride", integer_list({1, huge, 1}))),
             ContainsSubstring("stride is"));
  CHECK_THAT(contract_error("aten::im2col", with_argument(plain, "dilation", integer_list({huge, 1}))),
             ContainsSubstring("dilation is"));
  CHECK_THAT(contract_error("aten::col2im", {{"output_size", integer_list({huge, 1})}}),
             ContainsSubstring("output_size is"));
  CHECK(contract_error("aten::adaptive_avg_pool2d", {{"output_size", integer_list({1, 1})}}).empty());
  CHECK_THAT(contract_error("aten::adaptive_avg_pool2d", {{"output_size", integer_list({huge, 1})}}),
             ContainsSubstring("output_size is"));
}

TEST_CASE("padding is at most 2^24 and does not crop an axis beyond its size") {
  const auto error = [](const char* name, const char* argument, std::vector<std::int64_t> numbers) {
    return contract_error(name, {{"self", images()}, {argument, integer_list(std::move(numbers))}});
  };
  CHECK(error("aten::replication_pad2d", "padding", {1, 2, 3, 4}).empty());
  CHECK(error("aten::constant_pad_nd", "pad", {1, -2, 3, -4}).empty());
  CHECK(error("aten::constant_pad_nd", "pad", {-9, 9, 0, 0, 0, 4, 1, 0}).empty());
  for (const auto* const name : {"aten::replication_pad2d", "aten::reflection_pad2d"})
    CHECK_THAT(error(name, "padding", {huge, huge, huge, huge}), ContainsSubstring("padding is [9223372036854775807"));
  CHECK_THAT(error("aten::replication_pad1d", "padding", {1, most + 1}),
             ContainsSubstring("expected at most 16777216"));
  CHECK_THAT(error("aten::constant_pad_nd", "pad", {-huge, 0}), ContainsSubstring("pad is [-9223372036854775807, 0]"));
  CHECK_THAT(error("aten::pad", "pad", {huge, 0}), ContainsSubstring("pad is ["));
  CHECK_THAT(error("aten::replication_pad2d", "padding", {-20, 30, 0, 0}),
             ContainsSubstring("padding is [-20, 30, 0, 0] for [2, 4, 9, 9]; expected no more axes"));
  CHECK_THAT(error("aten::pad", "pad", {0, 0, 0, 0, 0, 0, 0, 0, 1, 1}), ContainsSubstring("expected no more axes"));
}

TEST_CASE("resizing scales must be finite and moderate") {
  const auto resized = [](double scale) {
    return contract_error("aten::_upsample_bilinear2d_aa", {{"self", images()},
                                                            {"output_size", integer_list({5, 5})},
                                                            {"align_corners", false},
                                                            {"scales_h", scale},
                                                            {"scales_w", 1.0}});
  };
  CHECK(resized(0.5).empty());
  CHECK(resized(4096.0).empty());
  CHECK(contract_error("aten::upsample_nearest2d", {{"output_size", integer_list({18, 18})}}).empty());
  for (const double scale : {1e-18, 1e-8, 0.0, -1.0, 1e300, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    CHECK_THAT(resized(scale), ContainsSubstring("expected 1/4096 to 4096"));
  CHECK_THAT(contract_error("aten::upsample_nearest2d.vec",
                            {{"input", images()}, {"scale_factors", std::vector<double>{1.0, 1e300}}}),
             ContainsSubstring("scale_factors has 1e+300"));
  CHECK_THAT(contract_error("aten::upsample_nearest1d", {{"output_size", integer_list({3})}, {"scales", 1e-300}}),
             ContainsSubstring("scales has 1e-300"));
  CHECK_THAT(contract_error("aten::upsample_bicubic2d", {{"output_size", integer_list({huge, 1})}}),
             ContainsSubstring("output_size is"));
}

TEST_CASE("grid sampling modes must be those of LibTorch") {
  for (const std::int64_t mode : {0, 1, 2})
    CHECK(contract_error("aten::grid_sampler", {{"interpolation_mode", mode}, {"padding_mode", 0}}).empty());
  CHECK_THAT(contract_error("aten::grid_sampler", {{"interpolation_mode", 9}, {"padding_mode", 0}}),
             ContainsSubstring("interpolation_mode is 9; expected 0 to 2"));
  CHECK_THAT(contract_error("aten::grid_sampler", {{"interpolation_mode", 0}, {"padding_mode", -1}}),
             ContainsSubstring("padding_mode is -1"));
}
