// Lets the table of c_api.cc take the place of upstream's, also where upstream itself asks for one. Included ahead of
// onnxruntime_c_api.cc: what is weak yields to what is not.
#pragma once

#pragma weak OrtGetApiBase
