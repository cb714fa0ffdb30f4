/* Android's logging, as far as native code of apps asks for it: https://developer.android.com/ndk/reference/group/logging.
   Every function is in liblog.so since the first API level that an NDK builds for. */
#pragma once

#include <stdarg.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

typedef enum android_LogPriority {
  ANDROID_LOG_UNKNOWN = 0,
  ANDROID_LOG_DEFAULT,
  ANDROID_LOG_VERBOSE,
  ANDROID_LOG_DEBUG,
  ANDROID_LOG_INFO,
  ANDROID_LOG_WARN,
  ANDROID_LOG_ERROR,
  ANDROID_LOG_FATAL,
  ANDROID_LOG_SILENT,
} android_LogPriority;

int __android_log_write(int priority, const char* tag, const char* text);
int __android_log_print(int priority, const char* tag, const char* format, ...) __attribute__((__format__(printf, 3, 4)));
int __android_log_vprint(int priority, const char* tag, const char* format, va_list arguments)
    __attribute__((__format__(printf, 3, 0)));
void __android_log_assert(const char* condition, const char* tag, const char* format, ...) __attribute__((__noreturn__))
__attribute__((__format__(printf, 3, 4)));

__END_DECLS
