"""ONNX: writing graphs operator by operator, and running them with onnxruntime on the CPU."""
