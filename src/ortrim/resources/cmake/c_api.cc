// The table of C functions that applications are handed, in place of upstream's: it keeps the functions that
// `build_options.api` names, and the rest say so. What only they reach is left out of the library by the linker, upstream's
// own table among it. The order is upstream's, so that a program compiled against any header finds what it looks for.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <type_traits>

#include "core/session/onnxruntime_c_api.h"
#include "core/session/ort_apis.h"
#ifdef ORTRIM_KEEPS_BLOCKS
#include "kept_blocks.h"
#endif

namespace {

enum Refused : int {
#define ORTRIM_KEPT(name)
#define ORTRIM_REFUSED(name) name,
#include "c_api_table.h"
#undef ORTRIM_REFUSED
};

// The names of what is refused, one after the other, each with its end.
constexpr char names[] =
#define ORTRIM_REFUSED(name) #name "\0"
#include "c_api_table.h"
#undef ORTRIM_REFUSED
#undef ORTRIM_KEPT
    "";

OrtStatus* refuse(int number) noexcept {
  const char* name = names;
  for (; number > 0; --number) {
    while (*name++ != 0) {
    }
  }
  constexpr char after[] = ": not in this library, which ortrim built without it (build_options.api)";
  char text[sizeof(after) + 128];
  char* end = text;
  while (*name != 0 && end != std::end(text) - sizeof(after)) *end++ = *name++;
  std::copy(std::begin(after), std::end(after), end);
  return OrtApis::CreateStatus(ORT_NOT_IMPLEMENTED, text);
}

template <int number, typename Function>
struct Refusal;

// A function without a status has nothing to say: what it would release was never made, and a table is not there.
template <int number, typename Result, typename... Arguments>
struct Refusal<number, Result(ORT_API_CALL*)(Arguments...) noexcept> {
  static Result ORT_API_CALL call(Arguments...) noexcept {
    if constexpr (std::is_same_v<Result, OrtStatus*>) {
      return refuse(number);
    } else if constexpr (!std::is_void_v<Result>) {
      return Result{};
    }
  }
};

template <auto function>
struct Kept {
  static constexpr auto entry = function;
};

#ifdef ORTRIM_KEEPS_BLOCKS

template <auto function>
struct InRoom;

template <typename... Arguments, OrtStatus*(ORT_API_CALL* function)(Arguments...) noexcept>
struct InRoom<function> {
  static OrtStatus* ORT_API_CALL call(Arguments... arguments) noexcept {
    const bool entered = ortrim::enter_room();
    OrtStatus* const status = function(arguments...);
    ortrim::leave_room(entered);
    return status;
  }
  static constexpr auto entry = &call;
};

template <>
struct Kept<&OrtApis::Run> : InRoom<&OrtApis::Run> {};

#endif

constexpr OrtApi table = {
#define ORTRIM_KEPT(name) Kept<&OrtApis::name>::entry,
#define ORTRIM_REFUSED(name) &Refusal<Refused::name, decltype(&OrtApis::name)>::call,
#include "c_api_table.h"
};

const OrtApi* ORT_API_CALL get_api(uint32_t version) noexcept {
  if (version >= 1 && version <= ORT_API_VERSION) return &table;
  std::fprintf(stderr, "ONNX Runtime %s has the versions 1 to %u of its C API; version %u was asked for\n",
               OrtApis::GetVersionString(), static_cast<unsigned>(ORT_API_VERSION), static_cast<unsigned>(version));
  return nullptr;
}

constexpr OrtApiBase base = {&get_api, &OrtApis::GetVersionString};

}  // namespace

const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) noexcept { return &base; }
