"""Headers, and sources of bindings, that are built as ONNX Runtime's are, and small enough to know by heart."""

from pathlib import Path
from typing import Final

C_HEADER: Final = """
ORT_RUNTIME_CLASS(Env);
ORT_RUNTIME_CLASS(Session);
ORT_RUNTIME_CLASS(Binding);
/* ORT_API2_STATUS(NeverWas, int a); */
struct OrtApi {
  ORT_API2_STATUS(CreateEnv, _In_ const char* logid, _Outptr_ OrtEnv** out);
  ORT_API2_STATUS(CreateSession, _In_ const OrtEnv* env,
                  _Outptr_ OrtSession** out);
  ORT_API2_STATUS(Run, _Inout_ OrtSession* session);
  ORT_API2_STATUS(RunWithBinding, _Inout_ OrtSession* session, _In_ const OrtBinding* binding);
  ORT_API2_STATUS(CreateBinding, _Outptr_ OrtBinding** out);
  ORT_API2_STATUS(KernelInfo_GetInputCount, _Out_ size_t* out);
  ORT_API2_STATUS(SessionGetInputCount, _Out_ size_t* out);
  ORT_API2_STATUS(KernelInfoGetAttribute_float, _Out_ float* out);
  ORT_API2_STATUS(EnableProfiling, const char* file);
  ORT_API2_STATUS(GetSparseTensorFormat, const OrtValue* value);
  ORT_API2_STATUS(CreateLoraAdapter, const char* file);
  const char*(ORT_API_CALL* GetBuildInfoString)(void)NO_EXCEPTION;
  ORT_CLASS_RELEASE(Env);
  ORT_CLASS_RELEASE(Session);
  ORT_CLASS_RELEASE(Binding);
  ORT_CLASS_RELEASE(Status);
};
"""
CXX_HEADER: Final = """
namespace Ort {
#define ORT_DEFINE_RELEASE(NAME) \\
  inline void OrtRelease(Ort##NAME* ptr) { GetApi().Release##NAME(ptr); }
std::string GetBuildInfoString();
struct Env : detail::Base<OrtEnv> {
  explicit Env(std::nullptr_t) {}
  Env(const char* logid);
};
namespace detail {
template <typename T>
struct SessionImpl : Base<T> {
  void Run();
  void Run(const Binding& binding);
  void Attach(const Binding& binding);
  size_t GetInputCount() const;
};
template <typename T>
struct KernelInfoImpl : Base<T> {
  size_t GetInputCount() const;
  template <typename R> R GetAttribute(const char* name) const { R r; attr_utils::GetAttr(name, r); return r; }
};
}
using UnownedSession = detail::SessionImpl<detail::Unowned<OrtSession>>;
struct Session : detail::SessionImpl<OrtSession> {
  explicit Session(std::nullptr_t) {}
  Session(const Env& env);
  UnownedSession GetUnowned() const { return UnownedSession{this->p_}; }
};
struct Binding : detail::Base<OrtBinding> {
  explicit Binding(std::nullptr_t) {}
  explicit Binding(Session& session);
};
struct KernelInfo : detail::KernelInfoImpl<OrtKernelInfo> {
  explicit KernelInfo(OrtKernelInfo* info) : detail::KernelInfoImpl<OrtKernelInfo>{info} {}
};
}
#include "onnxruntime_cxx_inline.h"
"""
CXX_INLINE: Final = """
namespace Ort {
inline Env::Env(const char* logid) { ThrowOnError(GetApi().CreateEnv(logid, &p_)); }
inline Session::Session(const Env& env) { ThrowOnError(GetApi().CreateSession(env, &p_)); }
inline Binding::Binding(Session& session) : p_{nullptr} { ThrowOnError(GetApi().CreateBinding(&p_)); }
inline std::string GetBuildInfoString() { return GetApi().GetBuildInfoString(); }
namespace detail {
inline void attr_utils::GetAttr(const char* name, float& out) {
#ifdef ONE_WAY
  if (GetApi().KernelInfoGetAttribute_float(&out)) {
#else
  if (Ort::GetApi().KernelInfoGetAttribute_float(&out)) {
#endif
  }
}
template <typename T>
inline void SessionImpl<T>::Run() { ThrowOnError(GetApi().Run(this->p_)); }
template <typename T>
inline void SessionImpl<T>::Run(const Binding& binding) { ThrowOnError(GetApi().RunWithBinding(this->p_, binding)); }
template <typename T>
inline void SessionImpl<T>::Attach(const Binding& binding) { ThrowOnError(GetApi().RunWithBinding(this->p_, binding)); }
template <typename T>
inline size_t SessionImpl<T>::GetInputCount() const { size_t n; GetApi().SessionGetInputCount(&n); return n; }
template <typename T>
inline size_t KernelInfoImpl<T>::GetInputCount() const { size_t n; GetApi().KernelInfo_GetInputCount(&n); return n; }
}
}
"""
OBJECTIVE_C: Final = """
@implementation ORTSession {
  std::optional<Ort::Session> _session;
}
- (nullable instancetype)initWithEnv:(ORTEnv*)env error:(NSError**)error {
  _session = Ort::Session{[env CXXAPIOrtEnv]};
  return self;
}
- (BOOL)runWithInputs:(NSDictionary<NSString*, ORTValue*>*)inputs error:(NSError**)error {
  _session->Run();
}
- (BOOL)enableProfilingWithPath:(NSString*)path error:(NSError**)error {
  Ort::ThrowOnError(Ort::GetApi().EnableProfiling(path.UTF8String));
}
@end
"""
TRAINING: Final = "- (instancetype)initWithState:(State*)state { Ort::Binding binding{session}; }"
JAVA: Final = {
    "OrtSession": """
package ai.onnxruntime;
public class OrtSession implements AutoCloseable {
  static { OnnxRuntime.init(); System.out.println(buildInfo()); }
  private final long handle = makeHandle(OnnxRuntime.ortApiHandle);
  public Result run(Map<String, OnnxTensor> inputs) throws OrtException { return run(handle, inputs.size()); }
  public long getInputCount() { return countInputs(handle); }
  public void startProfiling(String path) { enableProfiling(path); }
  @Override public void close() { closeSession(handle); }
  private static native long makeHandle(long api);
}
""",
    "OrtLoraAdapter": "public class OrtLoraAdapter { public static void create(String path) { load(path); } }",
}
NATIVE: Final = {
    "ai_onnxruntime_OrtSession": """
JNIEXPORT jlong JNICALL Java_ai_onnxruntime_OrtSession_makeHandle(JNIEnv* jniEnv, jlong handle) {
  checkOrtStatus(jniEnv, api, api->CreateSession(env, &session));
}
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_run__JI(JNIEnv* env) { api->Run(session); value(); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_countInputs(JNIEnv* env) { api->SessionGetInputCount(&n); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_enableProfiling(JNIEnv* env) { api->EnableProfiling(path); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_closeSession(JNIEnv* env) { api->ReleaseSession(session); }
""",
    "ai_onnxruntime_OnnxRuntime": """
JNIEXPORT jstring JNICALL Java_ai_onnxruntime_OrtSession_buildInfo(JNIEnv* env) { return api->GetBuildInfoString(); }
""",
    "OrtJniUtil": "jobject value(void) { api->GetSparseTensorFormat(value); }",
    "ai_onnxruntime_OrtLoraAdapter": """
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtLoraAdapter_load(JNIEnv* env) { api->CreateLoraAdapter(path); }
""",
}


def write_headers(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "onnxruntime_c_api.h").write_text(C_HEADER)
    (folder / "onnxruntime_cxx_api.h").write_text(CXX_HEADER)
    (folder / "onnxruntime_cxx_inline.h").write_text(CXX_INLINE)
    return folder


def write_bindings(tree: Path) -> Path:
    files = {"objectivec/ort_session.mm": OBJECTIVE_C, "objectivec/ort_training_session.mm": TRAINING}
    files |= {f"java/src/main/java/ai/onnxruntime/{name}.java": text for name, text in JAVA.items()}
    files |= {f"java/src/main/native/{name}.c": text for name, text in NATIVE.items()}
    for name, text in files.items():
        (tree / "onnxruntime" / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / "onnxruntime" / name).write_text(text)
    return tree / "onnxruntime"
