namespace Ort {
#define ORT_DEFINE_RELEASE(NAME) \
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
