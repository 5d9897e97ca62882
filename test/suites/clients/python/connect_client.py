"""Deletes plants with the client of protoc-gen-connectrpc, over Connect."""

import sys

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from pyqwest import SyncClient, SyncHTTPTransport

import script

sys.path.insert(0, "connect")

from plants.plantstore.v1.plant_service_connect import PlantServiceClientSync  # noqa: E402
from plants.plantstore.v1.plant_service_pb import DeletePlantRequest  # noqa: E402

# Connect names its codes in the order of their numbers.
NUMBERS = {code: number for number, code in enumerate(Code, start=1)}

transport = SyncHTTPTransport(tls_ca_cert=script.TRUSTED and script.TRUSTED.read_bytes())
client = PlantServiceClientSync(script.URL, http_client=SyncClient(transport))


def delete(plant: int, headers: dict[str, str], timeout: float | None) -> tuple[int, str]:
    timeout_ms = None if timeout is None else int(timeout * 1000)
    try:
        client.delete_plant(DeletePlantRequest(id=plant), headers=headers, timeout_ms=timeout_ms)
    except ConnectError as error:
        return NUMBERS[error.code], error.message
    return 0, ""


script.run(delete)
