import { expect, test } from "vitest";
import { exchangeHttp1, fieldValue } from "@protoport/testing/http";
import { startConfigured } from "../support/server/start-configured.ts";

// start-server.test.ts covers a public URL without a path.

test.each([
  { name: "an RPC", httpMethod: "DELETE", path: "/plants/1", resource: "/api" },
  { name: "the MCP endpoint", httpMethod: "POST", path: "/mcp", resource: "/api/mcp" },
  { name: "another endpoint", httpMethod: "GET", path: "/openapi.json", resource: "/api/openapi.json" },
])("the challenge for $name links to the metadata at the host's root", async ({ httpMethod, path, resource }) => {
  await using server = await startConfigured({
    PLANTSTORE_TOKENS: "sixteen-characters",
    PLANTSTORE_PUBLIC_URL: "https://plants.example/api",
    PLANTSTORE_MCP: "on",
  });
  const address = { address: "127.0.0.1", port: server.port };
  const refused = await exchangeHttp1(address, { httpMethod, path: `/api${path}`, header: [] });
  const documentPath = `/.well-known/oauth-protected-resource${resource}`;
  expect(fieldValue(refused.header, "www-authenticate")).toBe(
    `Bearer realm="plantstore", resource_metadata="https://plants.example${documentPath}"`,
  );
  const document = await exchangeHttp1(address, { httpMethod: "GET", path: documentPath, header: [] });
  expect(JSON.parse(String(document.body))).toMatchObject({ resource: `https://plants.example${resource}` });
  const header = [["authorization", "Bearer sixteen-characters"]] as const;
  const belowPath = await exchangeHttp1(address, { httpMethod: "GET", path: `/api${documentPath}`, header });
  expect(belowPath.httpStatus).toBe(404);
});
