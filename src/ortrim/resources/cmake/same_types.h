// Takes tensors of one type for as large without asking how large. Included ahead of allocation_planner.cc, which asks for
// each pair of tensors that might share memory: it describes both types as text and looks that up, nearly half of what it
// took to load a model of 300 nodes. A type has one name, at one place.
#pragma once

// The function's declaration stays as it is; its two calls are of `ptype1` and `ptype2`.
#define GetElementSize(type) ORTRIM_SIZE_OF_##type)
#define ORTRIM_SIZE_OF_const GetElementSize(const
#define ORTRIM_SIZE_OF_ptype1 (ptype1 == ptype2 ? 0 : GetElementSize(ptype1)
#define ORTRIM_SIZE_OF_ptype2 (ptype1 == ptype2 ? 0 : GetElementSize(ptype2)
