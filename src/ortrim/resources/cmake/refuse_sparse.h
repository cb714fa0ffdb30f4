// Read before upstream's graph.cc where that is compiled without sparse tensors: it would then leave a model's sparse
// weights out without a word, and the first run would read a tensor that is not there.
#pragma once

#include "core/common/common.h"
#include "core/flatbuffers/schema/ort.fbs.h"

// The one place where graph.cc reads the weights of a model in ORT format: `auto fbs_initializers = ...initializers();`.
#define initializers()                                                                                       \
  initializers();                                                                                            \
  ORT_RETURN_IF(fbs_graph.sparse_initializers() != nullptr && fbs_graph.sparse_initializers()->size() != 0,   \
                "The model has sparse weights, and this library is compiled without sparse tensors, which the " \
                "models that it was built for do not have")
