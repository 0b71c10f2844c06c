"""What a user of onnxruntime-qnn writes to compile: `compile.py QDQ_MODEL CONTEXT_MODEL SOC_MODEL VTCM_MB`."""

import sys

import onnxruntime as ort
import onnxruntime_qnn

model, context, soc_model, vtcm_mb = sys.argv[1:]
ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
devices = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"]
options = ort.SessionOptions()
options.add_session_config_entry("ep.context_enable", "1")
options.add_session_config_entry("ep.context_embed_mode", "0")
options.add_session_config_entry("ep.context_file_path", context)
backend = {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), "soc_model": soc_model, "vtcm_mb": vtcm_mb}
options.add_provider_for_devices(devices, backend)
ort.InferenceSession(model, options)
