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
