// Leaves out of MLAS's tables for weights of few bits what no model reaches by them. Included ahead of the sources that
// fill them: there the table has members of no size beside its own, of the same names, and what is assigned to these is
// dropped. Its own stay null, by which upstream's operator sees that there is no such function.
#pragma once

#define MLAS_QNBIT_GEMM_DISPATCH OrtrimDispatch
#include "mlasi.h"
#undef MLAS_QNBIT_GEMM_DISPATCH
#define MLAS_QNBIT_GEMM_DISPATCH OrtrimWholeDispatch
#include "qnbitgemm.h"
#undef MLAS_QNBIT_GEMM_DISPATCH

struct OrtrimUnused {
  template <typename Function>
  constexpr void operator=(Function&&) const {}
};

struct OrtrimDispatch : OrtrimWholeDispatch {
  inline static OrtrimUnused ORTRIM_UNUSED_FUNCTIONS;
};
static_assert(sizeof(OrtrimDispatch) == sizeof(OrtrimWholeDispatch));

#define MLAS_QNBIT_GEMM_DISPATCH OrtrimDispatch
