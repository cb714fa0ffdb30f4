jobject value(void) { api->GetSparseTensorFormat(value); }
