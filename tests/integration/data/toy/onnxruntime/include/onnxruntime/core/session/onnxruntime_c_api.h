int OrtGetApiBase(int value);
