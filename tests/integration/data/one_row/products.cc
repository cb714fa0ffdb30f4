// MLAS's products as the library has them: the header ahead of the source.
#include "one_row.h"
#include "core/mlas/lib/sgemm.cpp"
