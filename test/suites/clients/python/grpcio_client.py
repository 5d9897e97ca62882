"""Deletes plants with the stub of grpcio-tools."""

import sys

import grpc

import load
import script

sys.path.insert(0, "grpcio")

from plantstore.v1 import plant_service_pb2, plant_service_pb2_grpc  # noqa: E402
from streams.v1 import stream_service_pb2, stream_service_pb2_grpc  # noqa: E402

if script.TRUSTED is None:
    channel = grpc.insecure_channel(script.AUTHORITY)
else:
    channel = grpc.secure_channel(script.AUTHORITY, grpc.ssl_channel_credentials(script.TRUSTED.read_bytes()))
plants = plant_service_pb2_grpc.PlantServiceStub(channel)
streams = stream_service_pb2_grpc.StreamServiceStub(channel)


def delete(plant: int, headers: dict[str, str], timeout: float | None) -> tuple[int, str]:
    request = plant_service_pb2.DeletePlantRequest(id=plant)
    try:
        plants.DeletePlant(request, metadata=tuple(headers.items()), timeout=timeout)
    except grpc.RpcError as error:
        return outcome_of(error)
    return 0, ""


def outcome_of(error: grpc.RpcError) -> tuple[int, str]:
    return error.code().value[0], error.details()


def echo(pieces: int) -> None:
    sent = (stream_service_pb2.Piece(number=number, content=load.CONTENT) for number in range(pieces))
    load.read(streams.Echo(sent), outcome_of)


def count(pieces: int) -> None:
    load.read(streams.Count(stream_service_pb2.CountRequest(pieces=pieces)), outcome_of)


script.run(delete, {"echo": echo, "count": count})
