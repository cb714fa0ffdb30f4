// What most of protobuf's own sources begin with.
#if __has_include("google/protobuf/message_lite.h")
#include "google/protobuf/extension_set.h"
#include "google/protobuf/message_lite.h"
#include "google/protobuf/parse_context.h"
#include "google/protobuf/repeated_field.h"
#endif
