// Threads that enter the room by turns, allocate, write, hand some blocks to one another, read and delete.
#include "kept_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

struct Held {
  unsigned char *memory;
  size_t size;
  unsigned char value;
};

static std::mutex lock;
static std::vector<Held> handed;

static Held take(std::mt19937 &random) {
  const size_t size = random() % (random() % 8 ? 600 : 40000) / 64 * (random() % 2 ? 64 : 63);
  void *const aligned = !size || size % 64 ? nullptr : ortrim::from_room(size);  // As the arena asks for tensors
  if (reinterpret_cast<uintptr_t>(aligned) % 64) std::puts("not aligned"), std::exit(1);
  void *const memory = aligned ? aligned : ::operator new(size);
  if (reinterpret_cast<uintptr_t>(memory) % 16) std::puts("not aligned"), std::exit(1);
  Held held{static_cast<unsigned char *>(memory), size, static_cast<unsigned char>(random())};
  std::memset(held.memory, held.value, size);
  return held;
}

static void check_and_delete(const Held &held) {
  for (size_t i = 0; i < held.size; ++i)
    if (held.memory[i] != held.value) std::puts("written by another"), std::exit(1);
  ::operator delete(held.memory);
}

static void inferences(unsigned seed) {
  std::mt19937 random(seed);
  for (int inference = 0; inference < 400; ++inference) {
    std::vector<Held> own;
    const bool entered = ortrim::enter_room();
    for (int i = 0; i < 200; ++i) {
      own.push_back(take(random));
      if (random() % 2) {
        std::swap(own[random() % own.size()], own.back());
        check_and_delete(own.back());
        own.pop_back();
      }
    }
    for (Held &held : own) {
      if (random() % 4) {
        check_and_delete(held);
        continue;
      }
      const std::lock_guard<std::mutex> guard(lock);
      handed.push_back(held);
    }
    ortrim::leave_room(entered);
    std::vector<Held> others;
    {
      const std::lock_guard<std::mutex> guard(lock);
      others.swap(handed);
    }
    for (Held &held : others) check_and_delete(held);
  }
}

// Whether the second of two like inferences finds what the first has left, though it was deleted outside of it.
static bool kept() {
  ortrim::leave_room(ortrim::enter_room());
  void *first[50], *second[50];
  for (auto *each : {&first, &second}) {
    const bool entered = ortrim::enter_room();
    if (!entered) return false;
    for (void *&memory : *each) memory = ::operator new(1 + (&memory - *each) * 20);
    ortrim::leave_room(entered);
    for (void *memory : *each)
      if (!ortrim::to_room(memory)) return false;
  }
  return std::is_permutation(first, first + 50, second);
}

int main() {
  if (!kept()) std::puts("not kept"), std::exit(1);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(inferences, seed);
  for (std::thread &thread : threads) thread.join();
  for (Held &held : handed) check_and_delete(held);
  std::puts("as written");
}
