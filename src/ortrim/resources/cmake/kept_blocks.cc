// operator new and delete of the library's own. While a thread runs an inference, small blocks come from a room of the
// library's and go back there, so that an inference like one before it asks the C library for no memory. What the room
// has no place for, and all that is allocated outside of an inference, comes from malloc as ever.
#include "kept_blocks.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kPage = 1024, kPages = 256, kRoom = kPage * kPages;
constexpr std::size_t kStep = 16, kSmall = 256, kLargest = 32 * kPage;

struct Block {
  Block *next;
};

// Pages that were never handed out are never touched, and take no memory.
alignas(64) char room[kRoom];
unsigned char kinds[kPages];  // What the blocks of a page are; of blocks of several pages, the first page's
Block *waiting[18 + kLargest / kPage];
std::size_t pages_taken;
std::atomic<std::uintptr_t> owner{0};      // The thread whose inference uses the room; 0: nobody's
std::atomic<Block *> given_back{nullptr};  // What others have deleted
std::atomic<bool> warm{false};             // Whether an inference has run: a first one allocates what is kept for long

std::uintptr_t this_thread() {
#if defined(__x86_64__) || defined(__aarch64__)
  return (std::uintptr_t)__builtin_thread_pointer();
#else
  return (std::uintptr_t)pthread_self();
#endif
}

// 1 to 16 are blocks of as many steps, 17 those of half a page, 18 and on those of one page and on.
std::size_t kind_of(std::size_t size) {
  if (size <= kSmall) return (size + kStep - 1) / kStep + (size == 0);
  return size <= kPage / 2 ? 17 : 17 + (size + kPage - 1) / kPage;
}

std::size_t size_of(std::size_t kind) {
  return kind < 17 ? kind * kStep : kind == 17 ? kPage / 2 : (kind - 17) * kPage;
}

void put(Block *block) {
  Block *&first = waiting[kinds[static_cast<std::size_t>(reinterpret_cast<char *>(block) - room) / kPage]];
  block->next = first;
  first = block;
}

// Divides further pages into blocks of a kind, and returns one of them; nothing when there are no pages left.
[[gnu::noinline, gnu::cold]] void *divide(std::size_t kind) {
  const std::size_t size = size_of(kind), pages = (size + kPage - 1) / kPage;
  if (pages > kPages - pages_taken) return nullptr;
  char *const begin = room + pages_taken * kPage, *const end = begin + pages * kPage;
  kinds[pages_taken] = static_cast<unsigned char>(kind);
  pages_taken += pages;
  for (char *each = begin + size; each + size <= end; each += size) put(reinterpret_cast<Block *>(each));
  return begin;
}

}  // namespace

namespace ortrim {

bool has_room() noexcept { return owner.load(std::memory_order_relaxed) == this_thread(); }

void *from_room(std::size_t size) noexcept {
  if (!has_room() || size > kLargest) return nullptr;
  const std::size_t kind = kind_of(size);
  Block *const block = waiting[kind];
  if (!block) return divide(kind);
  waiting[kind] = block->next;
  return block;
}

bool to_room(void *memory) noexcept {
  if (reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(room) >= kRoom) return false;
  Block *const block = static_cast<Block *>(memory);
  if (has_room()) {
    put(block);
    return true;
  }
  block->next = given_back.load(std::memory_order_relaxed);
  while (!given_back.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return true;
}

bool enter_room() noexcept {
  if (!warm.load(std::memory_order_relaxed)) return false;
  std::uintptr_t nobody = 0;
  if (!owner.compare_exchange_strong(nobody, this_thread(), std::memory_order_acquire)) return false;
  for (Block *block = given_back.exchange(nullptr, std::memory_order_acquire); block;) {
    Block *const next = block->next;
    put(block);
    block = next;
  }
  return true;
}

void leave_room(bool entered) noexcept {
  if (entered) owner.store(0, std::memory_order_release);
  else warm.store(true, std::memory_order_relaxed);
}

}  // namespace ortrim

// The C++ library's other operators come to these.
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  void *const memory = ortrim::from_room(size);
  return memory ? memory : std::malloc(size ? size : 1);
}
void *operator new(std::size_t size) {
  void *const memory = operator new(size, std::nothrow);
  if (!memory) std::__throw_bad_alloc();
  return memory;
}
void operator delete(void *memory) noexcept {
  if (!ortrim::to_room(memory)) std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }
