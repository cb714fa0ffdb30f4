/* In the place of CoreFoundation's CFTimeZone.h, which zig does not carry: what abseil asks of it for a Mac's own time
 * zone. Nothing is known here, upon which abseil reads /etc/localtime, as it does on other systems. */
#ifndef ORTRIM_APPLE_TIME_ZONE_H
#define ORTRIM_APPLE_TIME_ZONE_H

typedef const void *CFTypeRef;
typedef const struct __CFString *CFStringRef;
typedef const struct __CFTimeZone *CFTimeZoneRef;
typedef unsigned int CFStringEncoding;
typedef long CFIndex;
enum { kCFStringEncodingUTF8 = 0x08000100 };

static inline CFTimeZoneRef CFTimeZoneCopyDefault(void) { return 0; }
static inline CFStringRef CFTimeZoneGetName(CFTimeZoneRef zone) { return (void)zone, (CFStringRef)0; }
static inline CFIndex CFStringGetLength(CFStringRef text) { return (void)text, 0; }
static inline CFIndex CFStringGetMaximumSizeForEncoding(CFIndex length, CFStringEncoding encoding) {
  return (void)length, (void)encoding, 0;
}
static inline unsigned char CFStringGetCString(CFStringRef text, char *buffer, CFIndex size, CFStringEncoding encoding) {
  return (void)text, (void)buffer, (void)size, (void)encoding, 0;
}
static inline void CFRelease(CFTypeRef it) { (void)it; }

#endif
