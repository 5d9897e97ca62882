"""Deletes a plant over gRPC. In this folder, with `pip install -r requirements.txt`:

    python -m grpc_tools.protoc -I ../../../proto -I ../../../protoport/gateway/proto --python_out=. --grpc_python_out=. plantstore/v1/plant_service.proto google/api/annotations.proto google/api/http.proto
    python main.py 127.0.0.1:8080 TOKEN 42
"""

import sys

import grpc

from plantstore.v1 import plant_service_pb2, plant_service_pb2_grpc

address, token, plant = sys.argv[1], sys.argv[2], int(sys.argv[3])
# The demo, on this machine, has no TLS.
if address.startswith("127.0.0.1:"):
    channel = grpc.insecure_channel(address)
else:
    channel = grpc.secure_channel(address, grpc.ssl_channel_credentials())
stub = plant_service_pb2_grpc.PlantServiceStub(channel)
try:
    request = plant_service_pb2.DeletePlantRequest(id=plant)
    stub.DeletePlant(request, metadata=[("authorization", f"Bearer {token}")], timeout=5)
    print(f"plant {plant} is deleted")
except grpc.RpcError as error:
    if error.code() != grpc.StatusCode.NOT_FOUND:
        raise
    print(f"there is no plant {plant}")
