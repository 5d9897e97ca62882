"""Deletes plants over REST with the client that openapi-python-client makes of openapi.json."""

import ssl

import httpx

import script
from openapi.api.plant_service import delete_plant
from openapi.client import Client
from openapi.models import Error

# The number of DEADLINE_EXCEEDED. Here it is the client that gives up.
DEADLINE_EXCEEDED = 4

trust = True if script.TRUSTED is None else ssl.create_default_context(cafile=script.TRUSTED)


def delete(plant: int, headers: dict[str, str], timeout: float | None) -> tuple[int, str]:
    authorized = Client(base_url=script.URL, verify_ssl=trust, headers=headers, timeout=httpx.Timeout(timeout))
    try:
        answer = delete_plant.sync_detailed(plant, client=authorized)
    except httpx.TimeoutException as error:
        return DEADLINE_EXCEEDED, str(error)
    return (answer.parsed.error, answer.parsed.message) if isinstance(answer.parsed, Error) else (0, "")


script.run(delete)
