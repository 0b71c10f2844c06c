"""What a user of onnxruntime-qnn writes to run one frame: `frame.py CONTEXT_MODEL FEEDS.npz SOC_MODEL VTCM_MB`."""

import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn

context, feeds, soc_model, vtcm_mb = sys.argv[1:]
ort.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
devices = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"]
options = ort.SessionOptions()
backend = {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), "soc_model": soc_model, "vtcm_mb": vtcm_mb}
options.add_provider_for_devices(devices, backend)
session = ort.InferenceSession(context, options)
session.run(None, dict(np.load(feeds)))
