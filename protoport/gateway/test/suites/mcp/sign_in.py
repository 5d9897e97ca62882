"""Calls a tool with the official client, which has no token at first: `sign_in.py URL TOOL MODE`."""

import asyncio
import json
import sys
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

url, tool, mode = sys.argv[1:]
redirect_uri = "http://127.0.0.1:1/callback"


class Storage:
    """Stores the tokens of the user, and the registration of the client."""

    tokens = None
    client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


class Browser:
    """The browser of a user, who consents."""

    callback = {}

    async def open(self, authorization_url):
        async with httpx2.AsyncClient() as http:
            response = await http.get(authorization_url, follow_redirects=False)
        self.callback = dict(parse_qsl(urlsplit(response.headers["location"]).query))

    async def wait_for_callback(self):
        names = ("code", "state", "iss")
        return AuthorizationCodeResult(**{name: self.callback[name] for name in names if name in self.callback})


async def main():
    browser = Browser()
    metadata = OAuthClientMetadata(
        client_name="test",
        redirect_uris=[redirect_uri],
        grant_types=["authorization_code"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(url, metadata, Storage(), browser.open, browser.wait_for_callback)
    async with Client(streamable_http_client(url, http_client=httpx2.AsyncClient(auth=auth)), mode=mode) as client:
        # The first request signs in. A request that has just signed in does not ask for a further scope.
        await client.list_tools()
        return (await client.call_tool(tool, {})).structured_content


print(json.dumps(asyncio.run(main())))
