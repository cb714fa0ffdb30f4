/* Read in front of the sources that register kernels, for models without 16-bit floats: on ARM64 they would register
 * kernels for these whatever types a model has, and MLAS's half-precision products would come with them. */
#include "core/mlas/inc/mlas.h"
#undef MLAS_F16VEC_INTRINSICS_SUPPORTED
