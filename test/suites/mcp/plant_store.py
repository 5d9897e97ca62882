"""Deletes plants with the official client: `plant_store.py URL CREDENTIAL MODE PLANT`."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, credential, mode, plant = sys.argv[1:]
tool = "plantstore_v1_PlantService_DeletePlant"


async def main():
    http = httpx2.AsyncClient(headers={"authorization": credential})
    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:

        async def delete(id, **options):
            result = await client.call_tool(tool, {"id": id}, **options)
            return result.content[0].text if result.is_error else result.structured_content

        return {
            "tools": [each.name for each in (await client.list_tools()).tools],
            "deleted": await delete(plant, meta={"idempotencyKey": f"key-{plant}"}),
            "repeated": await delete(plant, meta={"idempotencyKey": f"key-{plant}"}),
            "notFound": await delete(plant),
            "invalid": await delete("rose"),
        }


print(json.dumps(asyncio.run(main())))
