import { describe, expect, test } from "vitest";

import { createResourceMetadata } from "../src/protected-resource.ts";
import { askEndpoint } from "../../testing/src/gateway/ask-endpoint.ts";

const issuers = ["https://id.example/realms/orders"];
const scopes = ["orders:delete"];

describe("createResourceMetadata", () => {
  test.each([
    {
      publicUrl: "https://orders.example/",
      path: "/.well-known/oauth-protected-resource",
      resource: "https://orders.example",
    },
    {
      publicUrl: "https://orders.example/api/",
      path: "/.well-known/oauth-protected-resource/api",
      resource: "https://orders.example/api",
    },
    {
      publicUrl: "https://orders.example//",
      path: "/.well-known/oauth-protected-resource",
      resource: "https://orders.example",
    },
    {
      publicUrl: "https://orders.example:8443/a/b",
      path: "/.well-known/oauth-protected-resource/a/b",
      resource: "https://orders.example:8443/a/b",
    },
  ])("serves the metadata of $publicUrl at $path", async ({ publicUrl, path, resource }) => {
    const endpoint = createResourceMetadata({ name: "Orders", publicUrl: new URL(publicUrl), issuers, scopes });
    expect(endpoint).toMatchObject({ path, url: new URL(path, publicUrl).href, open: true, atRoot: true });
    const response = await askEndpoint(endpoint);
    expect(response).toMatchObject({
      httpStatus: 200,
      header: { "content-type": "application/json", "cache-control": "public, max-age=3600" },
    });
    expect(JSON.parse(String(response.body))).toEqual({
      resource,
      authorization_servers: issuers,
      scopes_supported: scopes,
      bearer_methods_supported: ["header"],
      resource_name: "Orders",
    });
  });

  test("omits members without values (RFC 9728 §2) and issuers that are not URLs", async () => {
    const endpoint = createResourceMetadata({
      name: "Orders",
      publicUrl: new URL("https://orders.example"),
      issuers: ["orders-ci"],
      scopes: [],
    });
    expect(Object.keys(JSON.parse(String((await askEndpoint(endpoint)).body)))).toEqual([
      "resource",
      "bearer_methods_supported",
      "resource_name",
    ]);
  });
});
