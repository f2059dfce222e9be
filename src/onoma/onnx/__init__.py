"""ONNX: writing graphs operator by operator, and running them with onnxruntime on the CPU."""

import os

# onnxruntime reads this when it is imported. Without it, it writes an identifier of the device below the user's cache
# folder and looks up the address of a telemetry service.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
