// A hand-written compiled module with the interface that LibTorch's loader expects
// (torch/csrc/inductor/aoti_runtime/interface.h). Its output is the first 64 numbers of a row times 2.5. Tests compile
// it without PyTorch, with one of the defects below by -DDEFECT=. LibTorch's functions are declared as in
// aoti_torch/c/shim.h.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <unordered_map>

#ifndef DEFECT
#define DEFECT none
#endif
#ifndef ROWS
#define ROWS 16
#endif

namespace {

enum class defect { none, fails, nan, infinite_scale, counts, writes, two_arguments, two_results, threads, mixes };

constexpr auto chosen = defect::DEFECT;
constexpr std::int64_t rows = ROWS, numbers = 300, width = 64;
constexpr std::int32_t done = 0, failed = 1, cpu = 0, float32 = 6;

using tensor = void*;
using constants = std::unordered_map<std::string, tensor>;

} // namespace

extern "C" {

std::int32_t aoti_torch_empty_strided(std::int64_t dimensions, const std::int64_t* sizes, const std::int64_t* strides,
                                      std::int32_t type, std::int32_t device, std::int32_t index, tensor* made);
std::int32_t aoti_torch_get_data_ptr(tensor of, void** data);
std::int32_t aoti_torch_delete_tensor_object(tensor dead);
void aoti_torch_of_tomorrow(); // exists in no LibTorch

} // extern "C"

namespace {

tensor empty(std::int64_t first, std::int64_t second) {
  const std::int64_t sizes[] = {first, second}, strides[] = {second, 1};
  tensor made = nullptr;
  aoti_torch_empty_strided(2, sizes, strides, float32, cpu, 0, &made);
  return made;
}

float* data_of(tensor of) {
  void* data = nullptr;
  aoti_torch_get_data_ptr(of, &data);
  return static_cast<float*>(data);
}

#ifdef DEADLY
const bool ended = (std::abort(), true); // when it is loaded
#endif

#ifdef LACKING
void (*volatile later)() = aoti_torch_of_tomorrow;
#endif

struct net {
  tensor scale = empty(1, 1), calls = empty(1, 1);
  net() {
    *data_of(scale) = chosen == defect::infinite_scale ? std::numeric_limits<float>::infinity() : 2.5F;
    *data_of(calls) = 0.0F;
  }
};

void forward(net& self, const float* from, float* to) {
  const float scale = *data_of(self.scale), calls = *data_of(self.calls);
#if defined(_OPENMP)
#pragma omp parallel for
#endif
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < width; ++i) {
      const auto mixed = chosen == defect::mixes ? 1e-6F * from[i] : 0.0F; // the first row of the call affects all rows
      to[row * width + i] = scale * from[row * numbers + i] + mixed + (chosen == defect::counts ? calls : 0.0F) +
                            (chosen == defect::nan ? 0.0F / (calls * 0.0F) : 0.0F);
    }
  if (chosen == defect::counts || chosen == defect::writes)
    *data_of(self.calls) += 1.0F;
}

constexpr const char* leaf = R"({"type": null, "context": null, "children_spec": []})";

std::string tuple_of(const std::string& parts) {
  return R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + parts + "]}";
}

} // namespace

extern "C" {

std::int32_t AOTInductorModelContainerCreateWithDevice(void** made, std::size_t, const char*, const char*) {
  *made = new net;
  return done;
}
std::int32_t AOTInductorModelContainerDelete(void* dead) {
  auto* self = static_cast<net*>(dead);
  aoti_torch_delete_tensor_object(self->scale);
  aoti_torch_delete_tensor_object(self->calls);
  delete self;
  return done;
}
std::int32_t AOTInductorModelContainerRun(void* container, tensor* inputs, std::size_t, tensor* outputs, std::size_t,
                                          void*, void*) {
  if (chosen == defect::fails)
    return failed;
  outputs[0] = empty(rows, width);
  forward(*static_cast<net*>(container), data_of(inputs[0]), data_of(outputs[0]));
  return aoti_torch_delete_tensor_object(inputs[0]);
}
std::int32_t AOTInductorModelContainerGetNumInputs(void*, std::size_t* count) {
  *count = chosen == defect::two_arguments ? 2 : 1;
  return done;
}
std::int32_t AOTInductorModelContainerGetNumOutputs(void*, std::size_t* count) {
  *count = chosen == defect::two_results ? 2 : 1;
  return done;
}
std::int32_t AOTInductorModelContainerGetNumConstants(void*, std::size_t* count) {
  *count = 2;
  return done;
}
std::int32_t AOTInductorModelContainerGetConstantName(void*, std::size_t index, const char** name) {
  *name = index == 0 ? "scale" : "calls";
  return done;
}
std::int32_t AOTInductorModelContainerGetConstantOriginalFQN(void* container, std::size_t index, const char** name) {
  return AOTInductorModelContainerGetConstantName(container, index, name);
}
std::int32_t AOTInductorModelContainerGetConstantDtype(void*, std::size_t, std::int32_t* type) {
  *type = float32;
  return done;
}
std::int32_t AOTInductorModelContainerExtractConstantsMap(void* container, void* into, bool) {
  const auto* self = static_cast<net*>(container);
  static_cast<constants*>(into)->emplace("scale", self->scale);
  static_cast<constants*>(into)->emplace("calls", self->calls);
  return done;
}
std::int32_t AOTInductorModelContainerGetCallSpec(void*, const char** in, const char** out) {
  static const auto arguments = chosen == defect::two_arguments ? std::string(leaf) + ", " + leaf : leaf;
  static const auto taken =
      "[1, " + tuple_of(tuple_of(arguments) + R"(, {"type": "builtins.dict", "context": "[]", "children_spec": []})") +
      "]";
  static const auto returned =
      "[1, " + (chosen == defect::two_results ? tuple_of(std::string(leaf) + ", " + leaf) : std::string(leaf)) + "]";
  *in = taken.c_str();
  *out = returned.c_str();
  return done;
}
std::int32_t AOTInductorModelContainerUpdateConstantBuffer(void*, void*, bool, bool) { return failed; }
std::int32_t AOTInductorModelContainerUpdateInactiveConstantBuffer(void*, void*) { return failed; }
std::int32_t AOTInductorModelContainerRunConstantFolding(void*, bool, void*, void*) { return failed; }
std::int32_t AOTInductorModelContainerSwapConstantBuffer(void*) { return failed; }
std::int32_t AOTInductorModelContainerFreeInactiveConstantBuffer(void*) { return failed; }
std::int32_t AOTInductorModelContainerUpdateUserManagedConstantBuffer(void*, void*, bool, bool) { return failed; }
std::int32_t AOTInductorModelContainerGetConstantsBlobSize(void*, std::uint64_t*) { return failed; }
std::int32_t AOTInductorModelUpdateConstantsFromBlob(void*, const std::uint8_t*) { return failed; }

} // extern "C"
