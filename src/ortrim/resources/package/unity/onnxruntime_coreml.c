// On iOS, C# is linked with this function whether or not an app calls it. The library beside it has no CoreML, and says so
// as it does of every function that it lacks.
#include <stdint.h>

typedef struct {
  void* (*CreateStatus)(int code, const char* message);
} Api;

typedef struct {
  const Api* (*GetApi)(uint32_t version);
} ApiBase;

extern const ApiBase* OrtGetApiBase(void);

enum { NOT_IMPLEMENTED = 9 };

void* OrtSessionOptionsAppendExecutionProvider_CoreML(void* options, uint32_t flags) {
  (void)options;
  (void)flags;
  return OrtGetApiBase()->GetApi(1)->CreateStatus(NOT_IMPLEMENTED, "CoreML: not in this library (providers)");
}
