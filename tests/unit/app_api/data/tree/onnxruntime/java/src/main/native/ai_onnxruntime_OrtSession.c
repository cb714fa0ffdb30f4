JNIEXPORT jlong JNICALL Java_ai_onnxruntime_OrtSession_makeHandle(JNIEnv* jniEnv, jlong handle) {
  checkOrtStatus(jniEnv, api, api->CreateSession(env, &session));
}
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_run__JI(JNIEnv* env) { api->Run(session); value(); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_countInputs(JNIEnv* env) { api->SessionGetInputCount(&n); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_enableProfiling(JNIEnv* env) { api->EnableProfiling(path); }
JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtSession_closeSession(JNIEnv* env) { api->ReleaseSession(session); }
