// Room for small blocks of memory, which the thread that runs an inference has to itself; see kept_blocks.cc.
#pragma once

#include <cstddef>

namespace ortrim {

void *from_room(std::size_t size) noexcept;  // Aligned as the greatest power of two that divides the size, to 64 at most;
                                             // nothing without place, or for whom the room is not
bool to_room(void *memory) noexcept;         // Whether it was from the room; any thread may give it back

bool has_room() noexcept;    // Whether this thread runs an inference and the room is its
bool enter_room() noexcept;  // Whether the room is now this thread's, which is what to say when leaving
void leave_room(bool entered) noexcept;

}  // namespace ortrim
