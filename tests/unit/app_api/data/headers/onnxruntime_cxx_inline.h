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
