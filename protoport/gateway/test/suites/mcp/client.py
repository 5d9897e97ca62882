"""Calls the server of client-server.ts with the official client: `client.py URL CREDENTIAL MODE EVERY_TYPE`."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, credential, mode, every_type = sys.argv[1:]
greenhouse = "greenhouse_v1_GreenhouseService"


def open_client(authorization):
    http = httpx2.AsyncClient(headers={"authorization": authorization})
    return Client(streamable_http_client(url, http_client=http), mode=mode)


async def is_refused():
    try:
        async with open_client("none") as client:
            await client.list_tools()
    except BaseException:
        return True
    return False


async def is_cancelled(client):
    begun = asyncio.Event()

    async def on_progress(*_):
        begun.set()

    arguments = {"sensor": "endless", "count": 1}
    call = asyncio.create_task(
        client.call_tool(f"{greenhouse}_WatchReadings", arguments, progress_callback=on_progress)
    )
    await begun.wait()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return True
    return False


async def main():
    progress = 0

    async def on_progress(*_):
        nonlocal progress
        progress += 1

    async with open_client(credential) as client:
        tools = (await client.list_tools()).tools
        call = await client.call_tool(f"{greenhouse}_WaterBed", {"bed": "9007199254740993", "liters": 3})
        failed = await client.call_tool(f"{greenhouse}_WaterBed", {"note": "dry"})
        stream = await client.call_tool(
            f"{greenhouse}_WatchReadings", {"sensor": "a", "count": 3}, progress_callback=on_progress
        )
        types = await client.call_tool("kitchensink_v1_KitchenSink_Create", json.loads(every_type))
        cancelled = await is_cancelled(client)
    return {
        "tools": [tool.name for tool in tools],
        "call": call.structured_content,
        "error": failed.content[0].text if failed.is_error else "no error",
        "stream": stream.structured_content,
        "progress": progress,
        "types": types.structured_content,
        "isRefused": await is_refused(),
        "isCancelled": cancelled,
    }


print(json.dumps(asyncio.run(main())))
