// operator new and delete of the library's own. Those of zig's C++ library are weak and visible, and the loader of a Mac
// joins weak symbols over all libraries of a program: memory of one would end up with another's.
#include <cstdlib>
#include <new>

namespace {

[[noreturn]] void out_of_memory() {
#if __cpp_exceptions
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

void *allocated(std::size_t size, std::size_t alignment) noexcept {
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size ? size : 1);
  void *memory = nullptr;
  return posix_memalign(&memory, alignment, size ? size : 1) ? nullptr : memory;
}

void *required(std::size_t size, std::size_t alignment) {
  void *memory = allocated(size, alignment);
  if (!memory) out_of_memory();
  return memory;
}

}  // namespace

void *operator new(std::size_t size) { return required(size, 1); }
void *operator new[](std::size_t size) { return required(size, 1); }
void *operator new(std::size_t size, std::align_val_t alignment) { return required(size, std::size_t(alignment)); }
void *operator new[](std::size_t size, std::align_val_t alignment) { return required(size, std::size_t(alignment)); }
void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return allocated(size, 1); }
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept { return allocated(size, 1); }
void *operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  return allocated(size, std::size_t(alignment));
}
void *operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  return allocated(size, std::size_t(alignment));
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete[](void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete[](void *memory, std::align_val_t, const std::nothrow_t &) noexcept { std::free(memory); }
