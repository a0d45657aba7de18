# Precompiled headers: what nearly every source reads of LibTorch, CAF and the standard library is read once. Sources
# still include what they use: tools/checks/includes_check.py compiles some of them without.
#
# What a header only may need is instantiated in every source that begins with it, so each kind holds no more than most
# of its sources use. CPU seconds for an empty source: 0.5 with tensors, 1.7 with operators, 1.0 with actors; ATen's
# operators cost 3.3 where they are not precompiled, CAF 1.6.
set(mneme_headers_tensors
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <coroutine> <cstdint> <cstdio> <cstring> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numbers> <numeric> <optional> <set> <span> <sstream>
  <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <ATen/core/Tensor.h> <fmt/format.h> <tl/expected.hpp>)
set(mneme_headers_operators ${mneme_headers_tensors} <ATen/ATen.h>)
set(mneme_headers_actors ${mneme_headers_tensors}
  <caf/actor_system_config.hpp> <caf/scoped_actor.hpp> <caf/typed_event_based_actor.hpp> <caf/typed_response_promise.hpp>)
# LibTorch's logging and Catch2 both define CHECK, and the last one holds.
set(mneme_headers_catch2
  <catch2/catch_approx.hpp> <catch2/catch_test_macros.hpp> <catch2/generators/catch_generators.hpp>
  <catch2/matchers/catch_matchers_floating_point.hpp> <catch2/matchers/catch_matchers_string.hpp>)
set(mneme_headers_tests ${mneme_headers_tensors} <c10/util/Logging.h> ${mneme_headers_catch2})
set(mneme_headers_operator_tests ${mneme_headers_operators} ${mneme_headers_catch2})
set(mneme_libraries_actors CAF::core)
set(mneme_libraries_tests Catch2::Catch2)
set(mneme_libraries_operator_tests Catch2::Catch2)
# Tests are compiled more often than they compute.
set(mneme_options_tests $<$<CONFIG:Release>:-O1>)
set(mneme_options_operator_tests ${mneme_options_tests})

# mneme_precompile(TARGET KIND): TARGET's sources start from the headers of KIND, which are compiled once for all
# targets.
function(mneme_precompile target kind)
  set(holder mneme_headers_of_${kind})
  if(NOT TARGET ${holder})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${holder}.cpp CONTENT "// Holds precompiled headers.\n")
    add_library(${holder} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${holder}.cpp)
    target_link_libraries(${holder} PRIVATE mneme_numbers ${mneme_libraries_${kind}})
    target_compile_options(${holder} PRIVATE ${mneme_options_${kind}})
    target_precompile_headers(${holder} PRIVATE ${mneme_headers_${kind}})
    mneme_checksum(${holder} "${mneme_headers_${kind}}")
  endif()
  target_compile_options(${target} PRIVATE ${mneme_options_${kind}})
  target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()

# mneme_checksum(HOLDER HEADERS): tells ccache by a few bytes what the precompiled headers hold; else it would read all
# 400 MB of them for every source, and take equal ones of two builds for different.
function(mneme_checksum holder headers)
  string(MD5 content "${headers} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${mneme_versions}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${holder}.dir/cmake_pch.hxx.gch.sum CONTENT "${content}\n")
endfunction()
