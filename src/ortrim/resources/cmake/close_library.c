/* Ends what the library has registered for the end of the process when the library is closed: gcc's crtbeginS.o does so,
 * which zig links none of. Without it the process calls, at its end, functions that are no longer there. */
__attribute__((visibility("hidden"))) extern void *const __dso_handle[];
void __cxa_finalize(const void *library);

__attribute__((destructor)) static void close_library(void) { __cxa_finalize(__dso_handle); }
