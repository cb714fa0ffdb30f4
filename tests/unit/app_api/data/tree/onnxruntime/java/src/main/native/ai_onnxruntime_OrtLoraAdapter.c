JNIEXPORT void JNICALL Java_ai_onnxruntime_OrtLoraAdapter_load(JNIEnv* env) { api->CreateLoraAdapter(path); }
