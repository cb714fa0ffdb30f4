// Has small tensors stay in the room of kept_blocks.h from one inference to the next: upstream's arena joins each chunk
// with its neighbours and sorts it into a tree, only to divide what it joined a moment later. What is reserved for good
// comes from outside of the arena; kernels that reserve memory in an inference (MatMulNBits) are given the arena's. Included
// ahead of the source that makes an arena.
#pragma once

#include "core/framework/bfc_arena.h"
#include "kept_blocks.h"

namespace onnxruntime {

class RoomArena : public BFCArena {
 public:
  using BFCArena::BFCArena;

  void* Alloc(size_t size) override {
    constexpr size_t alignment = 64, largest = 2048;
    if (size && size <= largest) {
      if (void* const memory = ortrim::from_room((size + alignment - 1) / alignment * alignment)) return memory;
    }
    return BFCArena::Alloc(size);
  }

  void* Reserve(size_t size) override { return ortrim::has_room() ? Alloc(size) : BFCArena::Reserve(size); }

  void Free(void* memory) override {
    if (!ortrim::to_room(memory)) BFCArena::Free(memory);
  }
};

}  // namespace onnxruntime

#define BFCArena RoomArena
