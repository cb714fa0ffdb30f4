JNIEXPORT jstring JNICALL Java_ai_onnxruntime_OrtSession_buildInfo(JNIEnv* env) { return api->GetBuildInfoString(); }
