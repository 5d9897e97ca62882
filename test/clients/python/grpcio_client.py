"""Deletes plants with the stub of grpcio-tools."""

import sys

import grpc

import script

sys.path.insert(0, "grpcio")

from plantstore.v1 import plant_service_pb2, plant_service_pb2_grpc  # noqa: E402

if script.TRUSTED is None:
    channel = grpc.insecure_channel(script.AUTHORITY)
else:
    channel = grpc.secure_channel(script.AUTHORITY, grpc.ssl_channel_credentials(script.TRUSTED.read_bytes()))
stub = plant_service_pb2_grpc.PlantServiceStub(channel)


def delete(plant: int, headers: dict[str, str], timeout: float | None) -> tuple[int, str]:
    request = plant_service_pb2.DeletePlantRequest(id=plant)
    try:
        stub.DeletePlant(request, metadata=tuple(headers.items()), timeout=timeout)
    except grpc.RpcError as error:
        return error.code().value[0], error.details()
    return 0, ""


script.run(delete)
