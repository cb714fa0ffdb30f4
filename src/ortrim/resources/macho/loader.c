/* Runs a library for Apple's systems on Linux, on a processor of its own kind or an emulated one: what dyld does with it
   is done here, and what it asks of Apple's libSystem comes from this program's C library, put into Apple's terms.

   It is compiled together with the runner, whose dlopen and dlsym it takes the place of (see loader.h). It proves what
   the compiler and the linker have made, not that Apple's own loader and libraries take it. What is not here of
   libSystem (what exceptions want, most of locales) ends the program with its name when it is used. */
#define _GNU_SOURCE
#define MACHO_LOADER_ITSELF
#include "loader.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { LC_SEGMENT_64 = 0x19, LC_DYLD_INFO_ONLY = (int)0x80000022u };
enum { LC_LOAD_DYLIB = 0xC, LC_LOAD_WEAK_DYLIB = (int)0x80000018u, LC_REEXPORT_DYLIB = (int)0x8000001Fu };
enum { MOD_INIT = 0x9, THREAD_REGULAR = 0x11, THREAD_ZEROFILL = 0x12 };
#if defined(__aarch64__)
enum { OWN_PROCESSOR = 0x0100000C };
#else
enum { OWN_PROCESSOR = 0x01000007 };
#endif
#define LIBSYSTEM "/usr/lib/libSystem.B.dylib"

struct command { uint32_t kind, size; };
struct header { uint32_t magic, processor, subtype, type, commands, commands_size, flags, reserved; };
struct segment {
  struct command command;
  char name[16];
  uint64_t address, memory, place, bytes;
  int32_t most, first;
  uint32_t sections, flags;
};
struct section {
  char name[16], segment[16];
  uint64_t address, size;
  uint32_t place, alignment, relocations, relocation_count, flags, reserved[3];
};
struct dyld_info {
  struct command command;
  uint32_t rebase, rebase_size, bind, bind_size, weak, weak_size, lazy, lazy_size, trie, trie_size;
};
struct dylib { struct command command; uint32_t name; };
struct variable { void *(*thunk)(struct variable *); uintptr_t block, offset; };

enum { MOST_SEGMENTS = 16 };
static unsigned char *image, *file;
static uint64_t file_size; /* of the slice, which `file` is the beginning of */
static off_t slice_place;
static int descriptor;
static struct segment *segments[MOST_SEGMENTS + 1];
static struct dyld_info *info;
static char failure[300];
static jmp_buf refused;

/* Ends macho_open, whose caller is told why. */
static _Noreturn void refuse(const char *what, const char *name) {
  snprintf(failure, sizeof failure, "%s%s", what, name);
  longjmp(refused, 1);
}

/* ---- What Apple's functions do otherwise than Linux's, or what is called otherwise. ---- */

/* A static initializer is a mark and zeros; Linux's is zeros. Two threads may come to it at once. */
static void plain(void *object, uint64_t mark) {
  __atomic_compare_exchange_n((uint64_t *)object, &mark, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
static void plain_mutex(void *mutex) { plain(mutex, 0x32AAABA7); }
static void plain_condition(void *condition) { plain(condition, 0x3CB0B1BB); }
static int a_mutex_lock(pthread_mutex_t *mutex) { plain_mutex(mutex); return pthread_mutex_lock(mutex); }
static int a_mutex_trylock(pthread_mutex_t *mutex) { plain_mutex(mutex); return pthread_mutex_trylock(mutex); }
static int a_mutex_unlock(pthread_mutex_t *mutex) { return pthread_mutex_unlock(mutex); }
static int a_mutex_destroy(pthread_mutex_t *mutex) { plain_mutex(mutex); return pthread_mutex_destroy(mutex); }
static int a_mutexattr_settype(pthread_mutexattr_t *attributes, int type) {
  return pthread_mutexattr_settype(attributes, type == 2 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL);
}
/* Apple's begins with a mark and has room behind it, which is zero until somebody begins. */
struct once { long mark, state; };
static int a_once(struct once *once, void (*initialize)(void)) {
  enum { BEGUN = 1, DONE };
  long state = 0;
  if (__atomic_compare_exchange_n(&once->state, &state, BEGUN, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    initialize();
    __atomic_store_n(&once->state, DONE, __ATOMIC_SEQ_CST);
  }
  while (__atomic_load_n(&once->state, __ATOMIC_SEQ_CST) != DONE) sched_yield();
  return 0;
}
static int a_cond_signal(pthread_cond_t *condition) { plain_condition(condition); return pthread_cond_signal(condition); }
static int a_cond_broadcast(pthread_cond_t *condition) {
  plain_condition(condition);
  return pthread_cond_broadcast(condition);
}
static int a_cond_destroy(pthread_cond_t *condition) { plain_condition(condition); return pthread_cond_destroy(condition); }
static int a_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  plain_condition(condition), plain_mutex(mutex);
  return pthread_cond_wait(condition, mutex);
}
static int a_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  plain_condition(condition), plain_mutex(mutex);
  int failed = pthread_cond_timedwait(condition, mutex, until);
  return failed == ETIMEDOUT ? 60 : failed; /* Apple's number for it */
}
static int a_key_create(uint64_t *key, void (*destroy)(void *)) {
  pthread_key_t made = 0;
  int failed = pthread_key_create(&made, destroy);
  *key = made;
  return failed;
}
static void *a_getspecific(uint64_t key) { return pthread_getspecific((pthread_key_t)key); }
static int a_setspecific(uint64_t key, const void *value) { return pthread_setspecific((pthread_key_t)key, value); }
static int a_threadid(void *thread, uint64_t *number) {
  *number = (uint64_t)(uintptr_t)(thread ? thread : (void *)pthread_self());
  return 0;
}
static int a_zero(void) { return 0; }
/* Says what a processor has, where an Apple system is asked for that by a name. */
static int a_sysctlbyname(const char *name, void *value, size_t *size, void *other, size_t other_size) {
  (void)other, (void)other_size;
  int number = -1;
#if defined(__aarch64__)
  const struct { const char *name; unsigned kind; unsigned bit; } known[] = {
    {"FEAT_DotProd", AT_HWCAP, 20}, {"FEAT_FP16", AT_HWCAP, 10}, {"FEAT_I8MM", AT_HWCAP2, 13}, {"FEAT_BF16", AT_HWCAP2, 14},
  }; /* bits of Linux's asm/hwcap.h */
  const char optional[] = "hw.optional.arm.";
  if (!strncmp(name, optional, sizeof optional - 1))
    for (size_t n = 0; n < sizeof known / sizeof *known; n++)
      if (!strcmp(name + sizeof optional - 1, known[n].name)) number = (int)(getauxval(known[n].kind) >> known[n].bit & 1);
#endif
  if (!strcmp(name, "hw.nperflevels")) number = 1;
  if (number < 0 || !value || *size < sizeof number) {
    errno = ENOENT;
    return -1;
  }
  memcpy(value, &number, sizeof number);
  *size = sizeof number;
  return 0;
}
static int a_minus_one(void) { return -1; }

static int a_clock_gettime(int clock, struct timespec *time) {
  return clock_gettime(clock == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, time);
}
static long a_sysconf(int name) { return name == 29 ? 16384 : name == 57 || name == 58 ? 1 : -1; }
static int a_fstat(int number, unsigned char *into) {
  struct stat found;
  int failed = fstat(number, &found);
  memset(into, 0, 144);
  *(uint16_t *)(into + 4) = (uint16_t)found.st_mode;
  *(int64_t *)(into + 96) = found.st_size;
  return failed;
}
static int a_open(const char *path, int flags) {
  if (flags & ~0x1000000) { /* O_CLOEXEC: nothing of the runtime's own is written by this function */
    errno = EINVAL;
    return -1;
  }
  return open(path, O_RDONLY);
}
static void *a_mmap(void *at, size_t size, int protection, int flags, int number, off_t place) {
  int anonymous = flags & 0x1000 ? MAP_ANONYMOUS : 0;
  return mmap(at, size, protection, (flags & 0x3) | anonymous, number, place);
}
static void list_of(va_list *list, void *arguments) {
#if defined(__aarch64__)
  struct { void *stack, *general, *vector; int general_offset, vector_offset; } here = {arguments, 0, 0, 0, 0};
  memcpy(list, &here, sizeof here); /* Apple's is the place of the arguments on the stack */
#else
  memcpy(list, arguments, sizeof *list);
#endif
}
__attribute__((used)) int a_vsnprintf_l(char *into, size_t size, void *locale, const char *form, void *arguments) {
  (void)locale;
  va_list list;
  list_of(&list, arguments);
  return vsnprintf(into, size, form, list);
}
static int a_vsnprintf(char *into, size_t size, const char *form, void *arguments) {
  return a_vsnprintf_l(into, size, NULL, form, arguments);
}
__attribute__((used)) int a_vasprintf_l(char **into, void *locale, const char *form, void *arguments) {
  (void)locale;
  va_list list;
  list_of(&list, arguments);
  return vasprintf(into, form, list);
}
/* Apple's functions with a variable number of arguments have these on the stack; on Intel's processors as on Linux. */
#if defined(__aarch64__)
__asm__(".text\n.globl a_snprintf_l\na_snprintf_l:\n mov x4, sp\n b a_vsnprintf_l\n"
        ".globl a_asprintf_l\na_asprintf_l:\n mov x3, sp\n b a_vasprintf_l\n"
        ".globl a_snprintf\na_snprintf:\n mov x4, sp\n mov x3, x2\n mov x2, xzr\n b a_vsnprintf_l\n");
extern int a_snprintf_l(char *, size_t, void *, const char *, ...), a_asprintf_l(char **, void *, const char *, ...);
extern int a_snprintf(char *, size_t, const char *, ...);
#else
#define FORWARD(call) va_list list; va_start(list, form); int size = call; va_end(list); return size
static int a_snprintf_l(char *into, size_t room, void *locale, const char *form, ...) {
  (void)locale;
  FORWARD(vsnprintf(into, room, form, list));
}
static int a_snprintf(char *into, size_t room, const char *form, ...) { FORWARD(vsnprintf(into, room, form, list)); }
static int a_asprintf_l(char **into, void *locale, const char *form, ...) {
  (void)locale;
  FORWARD(vasprintf(into, form, list));
}
#endif
static void *a_newlocale(int mask, const char *name, void *base) { (void)mask, (void)name, (void)base; return &a_newlocale; }
static size_t a_one(void) { return 1; }
static int a_maskrune(int rune, unsigned long mask);
static int a_tolower(int rune) { return rune >= 'A' && rune <= 'Z' ? rune + 32 : rune; }
static int a_toupper(int rune) { return rune >= 'a' && rune <= 'z' ? rune - 32 : rune; }
static void a_memset_pattern16(char *into, const char *pattern, size_t size) {
  for (size_t n = 0; n < size; n++) into[n] = pattern[n & 15];
}

static struct {
  char head[60];
  uint32_t kinds[256];
  int32_t lower[256], upper[256];
  char rest[200];
} runes; /* _DefaultRuneLocale, of which inline functions and C++ streams read the table of kinds */

static void fill_runes(void) {
  for (int c = 0; c < 128; c++) {
    uint32_t kind = 0;
    if (c < 32 || c == 127) kind |= 0x200;
    if (c >= '0' && c <= '9') kind |= 0x400 | 0x10000 | (uint32_t)(c - '0');
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) kind |= 0x10000 | (uint32_t)((c | 32) - 'a' + 10);
    if (c >= 'a' && c <= 'z') kind |= 0x1000 | 0x100;
    if (c >= 'A' && c <= 'Z') kind |= 0x8000 | 0x100;
    if (c == ' ' || (c >= 9 && c <= 13)) kind |= 0x4000;
    if (c == ' ' || c == '\t') kind |= 0x20000;
    if (c > 32 && c < 127) kind |= 0x800 | (kind & 0x500 ? 0 : 0x2000);
    if (c >= 32 && c < 127) kind |= 0x40000;
    runes.kinds[c] = kind;
    runes.lower[c] = a_tolower(c);
    runes.upper[c] = a_toupper(c);
  }
}
static int a_maskrune(int rune, unsigned long mask) {
  return rune >= 0 && rune < 256 ? (int)(runes.kinds[rune] & mask) : 0;
}

static FILE *standard_error, *standard_output, *standard_input;

/* ---- Variables of threads: each thread has a copy of what the image has for them. ---- */

static unsigned char *variables, *variables_end;
static __thread unsigned char *own_variables;

__attribute__((used)) unsigned char *thread_block(void) {
  if (!own_variables) {
    size_t size = (size_t)(variables_end - variables);
    if (posix_memalign((void **)&own_variables, 64, size)) abort();
    memcpy(own_variables, variables, size);
  }
  return own_variables;
}

/* Returns where a variable lies; whoever asks takes all other registers to be as they were. */
#if defined(__aarch64__)
__asm__(".text\n.globl variable_place\nvariable_place:\n stp x29, x30, [sp, #-16]!\n"
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n str x\\n, [sp, #-16]!\n.endr\n"
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        " str q\\n, [sp, #-16]!\n.endr\n"
        " bl thread_block\n mov x16, x0\n"
        ".irp n,31,30,29,28,27,26,25,24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0\n"
        " ldr q\\n, [sp], #16\n.endr\n"
        ".irp n,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0\n ldr x\\n, [sp], #16\n.endr\n"
        " ldr x17, [x0, #16]\n add x0, x16, x17\n ldp x29, x30, [sp], #16\n ret\n");
#else
__asm__(".text\n.globl variable_place\nvariable_place:\n"
        ".irp n,rcx,rdx,rsi,rdi,r8,r9,r10,r11\n push %\\n\n.endr\n sub $264, %rsp\n"
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups %xmm\\n, 16*\\n(%rsp)\n.endr\n"
        " call thread_block\n"
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups 16*\\n(%rsp), %xmm\\n\n.endr\n"
        " add $264, %rsp\n.irp n,r11,r10,r9,r8,rdi,rsi,rdx,rcx\n pop %\\n\n.endr\n"
        " addq 16(%rdi), %rax\n ret\n");
#endif
extern void *variable_place(struct variable *);

static const struct { const char *name; void *value; } KNOWN[] = {
#define SAME(name) {"_" #name, (void *)name}
#define OWN(name, value) {"_" name, (void *)(value)}
  SAME(_exit), SAME(abort), SAME(basename), SAME(bzero), SAME(calloc), SAME(close), SAME(difftime), SAME(dirname),
  SAME(fclose), SAME(fflush), SAME(fopen), SAME(fputc), SAME(fputs), SAME(fread), SAME(free), SAME(fseeko),
  SAME(ftello), SAME(fwrite), SAME(getenv), SAME(getpid), SAME(gettimeofday), SAME(gmtime_r), SAME(localtime_r),
  SAME(lseek), SAME(malloc), SAME(memchr), SAME(memcmp), SAME(memcpy), SAME(memmem), SAME(memmove), SAME(memset),
  SAME(mktime), SAME(munmap), SAME(nanosleep), SAME(posix_memalign), SAME(aligned_alloc), SAME(puts), SAME(qsort),
  SAME(read), SAME(realloc), SAME(sched_yield), SAME(setbuf), SAME(strcasecmp), SAME(strchr), SAME(strcmp),
  SAME(strcpy), SAME(strdup), SAME(strerror), SAME(strlen), SAME(strncmp), SAME(strncpy), SAME(strndup), SAME(strnlen),
  SAME(strrchr), SAME(strstr), SAME(strtod), SAME(strtof), SAME(strtol), SAME(strtoll), SAME(strtoul),
  SAME(strtoull), SAME(wcslen), SAME(write), SAME(wmemchr), SAME(wmemcmp), SAME(acos), SAME(acosf), SAME(acosh), SAME(acoshf),
  SAME(asin), SAME(asinf), SAME(asinh), SAME(asinhf), SAME(atan), SAME(atan2), SAME(atan2f), SAME(atanf),
  SAME(atanh), SAME(atanhf), SAME(cbrt), SAME(cbrtf), SAME(ceil), SAME(ceilf), SAME(copysign), SAME(copysignf),
  SAME(cos), SAME(cosf), SAME(cosh), SAME(coshf), SAME(erf), SAME(erfc), SAME(erfcf), SAME(erff), SAME(exp),
  SAME(exp2), SAME(exp2f), SAME(expf), SAME(expm1), SAME(expm1f), SAME(floor), SAME(floorf), SAME(fma), SAME(fmaf),
  SAME(fmax), SAME(fmaxf), SAME(fmin), SAME(fminf), SAME(fmod), SAME(fmodf), SAME(frexp), SAME(frexpf), SAME(hypot),
  SAME(hypotf), SAME(ldexp), SAME(ldexpf), SAME(lgamma), SAME(lgammaf), SAME(llrint), SAME(llrintf), SAME(llround),
  SAME(llroundf), SAME(log), SAME(log10), SAME(log10f), SAME(log1p), SAME(log1pf), SAME(log2), SAME(log2f),
  SAME(logb), SAME(logbf), SAME(logf), SAME(lrint), SAME(lrintf), SAME(lround), SAME(lroundf), SAME(modf),
  SAME(modff), SAME(nearbyint), SAME(nearbyintf), SAME(nextafter), SAME(nextafterf), SAME(pow), SAME(powf),
  SAME(remainder), SAME(remainderf), SAME(remquof), SAME(rint), SAME(rintf), SAME(round), SAME(roundf),
  SAME(scalbn), SAME(scalbnf), SAME(sin), SAME(sinf), SAME(sinh), SAME(sinhf), SAME(sqrt), SAME(sqrtf), SAME(tan),
  SAME(tanf), SAME(tanh), SAME(tanhf), SAME(tgamma), SAME(tgammaf), SAME(trunc), SAME(truncf), SAME(pthread_self),
  SAME(pthread_equal), SAME(pthread_attr_init), SAME(pthread_attr_destroy), SAME(pthread_attr_setstacksize),
  SAME(pthread_mutexattr_init), SAME(pthread_mutexattr_destroy), SAME(pthread_mutex_init),
  OWN("__bzero", bzero), OWN("__memcpy_chk", memcpy), OWN("__memmove_chk", memmove), OWN("__memset_chk", memset),
  SAME(pthread_create), SAME(pthread_join), SAME(pthread_detach),
  OWN("pthread_cond_wait", a_cond_wait), OWN("pthread_cond_timedwait", a_cond_timedwait),
  OWN("strtod_l", strtod), OWN("strtof_l", strtof), OWN("vsnprintf", a_vsnprintf),
  OWN("pthread_mutex_lock", a_mutex_lock), OWN("pthread_mutex_trylock", a_mutex_trylock),
  OWN("pthread_mutex_unlock", a_mutex_unlock), OWN("pthread_mutex_destroy", a_mutex_destroy),
  OWN("pthread_mutexattr_settype", a_mutexattr_settype), OWN("pthread_cond_signal", a_cond_signal),
  OWN("pthread_cond_broadcast", a_cond_broadcast), OWN("pthread_cond_destroy", a_cond_destroy),
  OWN("pthread_once", a_once), OWN("pthread_key_create", a_key_create), OWN("pthread_getspecific", a_getspecific),
  OWN("pthread_setspecific", a_setspecific), OWN("pthread_threadid_np", a_threadid),
  OWN("pthread_mach_thread_np", a_zero), OWN("clock_gettime", a_clock_gettime), OWN("sysconf", a_sysconf),
  OWN("fstat", a_fstat), OWN("fstat$INODE64", a_fstat), OWN("open", a_open), OWN("mmap", a_mmap), OWN("sysctl", a_minus_one),
  OWN("sysctlbyname", a_sysctlbyname), OWN("vsnprintf_l", a_vsnprintf_l), OWN("__error", __errno_location),
  OWN("__maskrune", a_maskrune), OWN("__tolower", a_tolower), OWN("__toupper", a_toupper),
  OWN("snprintf_l", a_snprintf_l), OWN("asprintf_l", a_asprintf_l), OWN("snprintf", a_snprintf),
  OWN("newlocale", a_newlocale), OWN("freelocale", a_zero), OWN("uselocale", a_newlocale), OWN("mbtowc_l", a_zero),
  OWN("___mb_cur_max_l", a_one), OWN("memset_pattern16", a_memset_pattern16), OWN("__cxa_atexit", a_zero), OWN("_tlv_atexit", a_zero),
  OWN("_tlv_bootstrap", variable_place), OWN("_DefaultRuneLocale", &runes), OWN("__stderrp", &standard_error),
  OWN("__stdoutp", &standard_output), OWN("__stdinp", &standard_input),
};

/* What is not here is bound to an address of its own where nothing is: a program may do without it, and one that calls
   or reads it ends with its name. */
enum { HOLE_BYTES = 4096, MOST_HOLES = 4096 };
static unsigned char *holes;
static const char *hole_names[MOST_HOLES];
static size_t hole_count;

static void on_fault(int number, siginfo_t *fault, void *context) {
  (void)context;
  size_t hole = ((uintptr_t)fault->si_addr - (uintptr_t)holes) / HOLE_BYTES;
  signal(number, SIG_DFL); /* any other fault is met again, and ends the program */
  if (hole >= hole_count) return;
  const char *words[] = {"macho: not found: ", hole_names[hole], "\n"};
  for (int n = 0; n < 3; n++)
    if (write(STDERR_FILENO, words[n], strlen(words[n])) < 0) break;
  _exit(EXIT_NOT_FOUND);
}

static void *hole(const char *name) {
  if (!holes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    holes = mmap(NULL, (size_t)HOLE_BYTES * MOST_HOLES, PROT_NONE, flags, -1, 0);
    if (holes == MAP_FAILED || sigaction(SIGSEGV, &action, NULL)) refuse("no memory", "");
  }
  size_t n = 0;
  while (n < hole_count && strcmp(hole_names[n], name)) n++;
  if (n == MOST_HOLES) refuse("too many symbols that are not found, among them ", name);
  if (n == hole_count) hole_names[hole_count++] = name;
  return holes + n * HOLE_BYTES;
}

static void *found(const char *name) {
  for (size_t n = 0; n < sizeof KNOWN / sizeof *KNOWN; n++)
    if (!strcmp(KNOWN[n].name, name)) return KNOWN[n].value;
  return hole(name);
}

/* ---- What dyld does. The numbers are those of Apple's mach-o/loader.h. ---- */

static uint64_t uleb(const unsigned char **place) {
  uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    unsigned char byte = *(*place)++;
    number |= (uint64_t)(byte & 0x7F) << shift;
    if (!(byte & 0x80)) return number;
  }
}
static int64_t sleb(const unsigned char **place) {
  int64_t number = 0;
  for (int shift = 0;;) {
    unsigned char byte = *(*place)++;
    number |= (int64_t)(byte & 0x7F) << shift;
    shift += 7;
    if (!(byte & 0x80)) return byte & 0x40 && shift < 64 ? number | -((int64_t)1 << shift) : number;
  }
}

static void rebase(const unsigned char *place, const unsigned char *end) {
  unsigned char *at = NULL;
  while (place < end) {
    unsigned char byte = *place++, immediate = byte & 0xF;
    uint64_t count = 1, skip = 0;
    switch (byte & 0xF0) {
      case 0x00: return;
      case 0x10: continue;
      case 0x20: at = image + segments[immediate]->address + uleb(&place); continue;
      case 0x30: at += uleb(&place); continue;
      case 0x40: at += immediate * 8; continue;
      case 0x50: count = immediate; break;
      case 0x60: count = uleb(&place); break;
      case 0x70: skip = uleb(&place); break;
      case 0x80: count = uleb(&place), skip = uleb(&place); break;
      default: refuse("unknown rebase opcode", "");
    }
    for (; count; count--, at += 8 + skip) *(uint64_t *)at += (uint64_t)image;
  }
}

static void bind(const unsigned char *place, const unsigned char *end) {
  unsigned char *at = NULL;
  const char *name = "";
  int64_t addend = 0;
  while (place < end) {
    unsigned char byte = *place++, immediate = byte & 0xF;
    uint64_t count = 1, skip = 0;
    switch (byte & 0xF0) {
      case 0x00: case 0x10: case 0x30: case 0x50: continue; /* done (of one lazy symbol), library, kind of pointer */
      case 0x20: uleb(&place); continue;
      case 0x40: name = (const char *)place; place += strlen(name) + 1; continue;
      case 0x60: addend = sleb(&place); continue;
      case 0x70: at = image + segments[immediate]->address + uleb(&place); continue;
      case 0x80: at += uleb(&place); continue;
      case 0x90: break;
      case 0xA0: skip = uleb(&place); break;
      case 0xB0: skip = immediate * 8; break;
      case 0xC0: count = uleb(&place), skip = uleb(&place); break;
      default: refuse("unknown bind opcode", "");
    }
    for (; count; count--, at += 8 + skip) *(uint64_t *)at = (uint64_t)found(name) + (uint64_t)addend;
  }
}

static void *exported(const char *name) {
  const unsigned char *trie = file + info->trie, *place = trie;
  for (;;) {
    uint64_t size = uleb(&place);
    const unsigned char *children = place + size;
    if (!*name) {
      if (!size) return NULL;
      uleb(&place);
      return image + uleb(&place);
    }
    unsigned char count = *children++;
    for (; count; count--) {
      size_t length = strlen((const char *)children);
      int same = !strncmp((const char *)children, name, length);
      children += length + 1;
      uint64_t next = uleb(&children);
      if (same) {
        name += length;
        place = trie + next;
        break;
      }
    }
    if (!count) return NULL;
  }
}

static uint32_t big_endian(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Goes on to this processor's slice, where a file has several. */
static void choose_slice(void) {
  if (big_endian(file) != 0xCAFEBABE) return;
  uint32_t count = big_endian(file + 4);
  for (uint32_t n = 0; n < count && 8 + 20 * (uint64_t)(n + 1) <= file_size; n++) {
    const unsigned char *slice = file + 8 + 20 * n;
    uint64_t place = big_endian(slice + 8), size = big_endian(slice + 12);
    if (big_endian(slice) != OWN_PROCESSOR || place + size > file_size) continue;
    file += place, file_size = size, slice_place = (off_t)place;
    return;
  }
  refuse("no slice of it is for this processor", "");
}

static const struct header *read_file(const char *path) {
  struct stat found;
  descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &found)) refuse("cannot read ", path);
  file_size = (uint64_t)found.st_size;
  if (file_size < sizeof(struct header)) refuse("no Mach-O library: ", path);
  file = mmap(NULL, file_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (file == MAP_FAILED) refuse("cannot map ", path);
  choose_slice();
  const struct header *header = (void *)file;
  if (header->magic != 0xFEEDFACF || header->type != 6) refuse("no Mach-O library of 64 bits: ", path);
  if (header->processor != OWN_PROCESSOR) refuse("it is for another processor: ", path);
  if (sizeof *header + header->commands_size > file_size) refuse("it is cut off: ", path);
  return header;
}

enum { WRITABLE_CODE = PROT_READ | PROT_WRITE | PROT_EXEC };

/* Maps what dyld maps, so that of a library as little is resident as there. */
static void map_segment(const struct segment *segment) {
  unsigned char *at = image + segment->address;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), rest = (page - segment->bytes % page) % page;
  if (!segment->bytes) return;
  const int flags = MAP_PRIVATE | MAP_FIXED;
  if (mmap(at, segment->bytes, WRITABLE_CODE, flags, descriptor, slice_place + (off_t)segment->place) == MAP_FAILED)
    refuse("cannot map its segment ", segment->name);
  if (segment->memory > segment->bytes) memset(at + segment->bytes, 0, rest);
}

static void lay_out(const struct header *header) {
  uint64_t size = 0;
  unsigned count = 0;
  struct command *command = (void *)(header + 1);
  for (uint32_t n = header->commands; n; n--, command = (void *)((char *)command + command->size)) {
    const char *needed = (char *)command + ((struct dylib *)command)->name;
    switch ((int)command->kind) {
      case LC_LOAD_DYLIB: case LC_LOAD_WEAK_DYLIB: case LC_REEXPORT_DYLIB:
        if (strcmp(needed, LIBSYSTEM)) refuse("it needs a library that only an Apple system has: ", needed);
        break;
      case LC_DYLD_INFO_ONLY: info = (void *)command; break;
      case LC_SEGMENT_64:
        if (count == MOST_SEGMENTS) refuse("it has too many segments", "");
        segments[count] = (void *)command;
        if (segments[count]->place + segments[count]->bytes > file_size) refuse("it is cut off at segment ", segments[count]->name);
        if (segments[count]->address + segments[count]->memory > size) size = segments[count]->address + segments[count]->memory;
        count++;
    }
  }
  if (!info) refuse("it has no LC_DYLD_INFO_ONLY: Apple's linker made it, or an unknown one", "");
  image = mmap(NULL, size, WRITABLE_CODE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image == MAP_FAILED) refuse("no memory", "");
  for (unsigned n = 0; n < count; n++) map_segment(segments[n]);
  __builtin___clear_cache((char *)image, (char *)image + size);
}

/* What the image has for threads lies in one piece, zeros after the rest. */
static void find_variables(void) {
  for (int n = 0; segments[n]; n++)
    for (uint32_t m = 0; m < segments[n]->sections; m++) {
      struct section *section = (struct section *)(segments[n] + 1) + m;
      unsigned kind = section->flags & 0xFF;
      if (kind != THREAD_REGULAR && kind != THREAD_ZEROFILL) continue;
      unsigned char *start = image + section->address, *end = start + section->size;
      if (!variables || start < variables) variables = start;
      if (end > variables_end) variables_end = end;
    }
}

static void initialize(void) {
  for (int n = 0; segments[n]; n++)
    for (uint32_t m = 0; m < segments[n]->sections; m++) {
      struct section *section = (struct section *)(segments[n] + 1) + m;
      if ((section->flags & 0xFF) != MOD_INIT) continue;
      void (**start)(int, char **, char **, char **) = (void *)(image + section->address);
      char *none[] = {NULL};
      for (uint64_t each = 0; each < section->size / 8; each++) start[each](0, none, none, none);
    }
}

void *macho_open(const char *path, int flags) {
  (void)flags;
  if (setjmp(refused)) return NULL;
  if (file) refuse("another library is loaded already, and there is room for one: ", path);
  standard_error = stderr, standard_output = stdout, standard_input = stdin;
  fill_runes();
  lay_out(read_file(path));
  close(descriptor);
  rebase(file + info->rebase, file + info->rebase + info->rebase_size);
  bind(file + info->bind, file + info->bind + info->bind_size);
  bind(file + info->lazy, file + info->lazy + info->lazy_size);
  find_variables();
  initialize();
  return image;
}

void *macho_symbol(void *opened, const char *name) {
  (void)opened;
  char full[200];
  snprintf(full, sizeof full, "_%s", name);
  void *value = exported(full);
  if (!value) snprintf(failure, sizeof failure, "the library does not export %s", full);
  return value;
}

char *macho_error(void) { return failure; }
