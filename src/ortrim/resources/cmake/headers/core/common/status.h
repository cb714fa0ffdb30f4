// Before upstream's header of this name, which it reads: a status, which is one pointer, is handed over in a register where
// the C++ library's own pointers are. Nearly every function returns one.
#pragma once

#include <memory>
#include <string>
#include <ostream>

#if defined(__clang__) && defined(_LIBCPP_ABI_ENABLE_UNIQUE_PTR_TRIVIAL_ABI)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((trivial_abi)), apply_to = record)
#include_next "core/common/status.h"
#pragma clang attribute pop
#pragma clang diagnostic pop
#else
#include_next "core/common/status.h"
#endif
