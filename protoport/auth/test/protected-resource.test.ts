import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { Endpoint, GatewayOptions } from "../../gateway/src/index.ts";
import { createMcp } from "../../gateway/src/mcp/index.ts";
import { fieldValue, type HttpRequest } from "@protoport/testing/http";
import { askEndpoint } from "../../testing/src/gateway/ask-endpoint.ts";
import { transportNames, openEveryTransport } from "../../testing/src/gateway/every-transport.ts";
import { waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { statelessRequest, toolNameOf } from "../../testing/src/gateway/mcp.ts";
import { type BearerAuth, createBearerAuth } from "../src/bearer-auth.ts";
import { createResourceMetadata } from "../src/protected-resource.ts";
import type { TokenVerifier } from "../src/token-verifier.ts";

const issuers = ["https://id.example/realms/orders"];
const scopes = ["orders:delete"];

async function documentOf(endpoint: Endpoint | undefined): Promise<Record<string, unknown>> {
  if (endpoint === undefined) throw new Error("there is no endpoint");
  const response = await askEndpoint(endpoint);
  const header = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  expect(response).toMatchObject({ httpStatus: 200, header });
  return JSON.parse(String(response.body));
}

describe("createResourceMetadata", () => {
  test.each([
    ["https://orders.example/", "/.well-known/oauth-protected-resource", "https://orders.example"],
    ["https://orders.example/api/", "/.well-known/oauth-protected-resource/api", "https://orders.example/api"],
    ["https://orders.example//", "/.well-known/oauth-protected-resource", "https://orders.example"],
    ["https://orders.example:8443/a/b", "/.well-known/oauth-protected-resource/a/b", "https://orders.example:8443/a/b"],
  ])("serves metadata for %s, and for /mcp and /tools below it", async (publicUrl, path, resource) => {
    const paths = ["/mcp", "/tools", "/mcp"];
    const options = { name: "Orders", publicUrl: new URL(publicUrl), issuers, scopes, paths };
    const { endpoints, url, urlsByPath } = createResourceMetadata(options);
    const wanted = ["", "/mcp", "/tools"];
    expect(endpoints).toMatchObject(wanted.map((each) => ({ path: path + each, open: true, atRoot: true })));
    for (const [at, each] of wanted.entries())
      expect(await documentOf(endpoints[at])).toEqual({
        resource: resource + each,
        authorization_servers: issuers,
        scopes_supported: scopes,
        bearer_methods_supported: ["header"],
        resource_name: "Orders",
      });
    expect(url).toBe(new URL(path, publicUrl).href);
    const prefix = new URL(resource).pathname.replace(/^\/$/, "");
    for (const each of ["/mcp", "/tools"]) {
      expect(urlsByPath.get(each)).toBe(url + each);
      expect(urlsByPath.get(prefix + each)).toBe(url + each);
    }
  });

  test("omits members without values (RFC 9728 §2) and non-URL issuers", async () => {
    const publicUrl = new URL("https://orders.example");
    const { endpoints } = createResourceMetadata({ name: "Orders", publicUrl, issuers: ["orders-ci"], scopes: [] });
    expect(endpoints).toHaveLength(1);
    const names = ["resource", "bearer_methods_supported", "resource_name"];
    expect(Object.keys(await documentOf(endpoints[0]))).toEqual(names);
  });

  test("refuses a path that does not start with a slash", () => {
    const publicUrl = new URL("https://orders.example");
    expect(() => createResourceMetadata({ name: "Orders", publicUrl, issuers, scopes, paths: ["/a", "mcp"] })).toThrow(
      'paths of createResourceMetadata must be similar to "/mcp", got "mcp"',
    );
  });
});

const checks: Readonly<Record<string, (auth: BearerAuth) => Partial<GatewayOptions>>> = {
  admit: ({ admit }) => ({ admit }),
  "the interceptor": ({ interceptor }) => ({ interceptors: [interceptor] }),
};

const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "no token is accepted" }) };

/** The clients' base URL, and the gateway's prefix, which is shorter if a proxy removes the path. */
const places = [
  { publicUrl: "https://orders.example", prefix: "" },
  { publicUrl: "https://orders.example/api", prefix: "/api" },
  { publicUrl: "https://orders.example/api", prefix: "" },
];

describe.each(
  places.flatMap((place) => Object.entries(checks).map(([checked, check]) => ({ ...place, checked, check }))),
)("a challenge by $checked at $publicUrl (requestPathPrefix '$prefix')", ({ publicUrl, prefix, checked, check }) => {
  const call = statelessRequest("tools/call", { name: toolNameOf(waterBedProcedure), arguments: {} });
  const requests: readonly { request: HttpRequest; resource: string }[] = [
    { request: call, resource: `${publicUrl}/mcp` },
    { request: { ...call, path: "/mcp?session=1" }, resource: `${publicUrl}/mcp` },
    { request: { httpMethod: "POST", path: "/beds/7:water", header: [] }, resource: publicUrl },
    // Requests without an RPC, which no interceptor checks.
    ...(checked === "admit"
      ? [
          { request: { httpMethod: "GET", path: "/mcp", header: [] }, resource: `${publicUrl}/mcp` },
          { request: { httpMethod: "GET", path: "/report", header: [] }, resource: `${publicUrl}/report` },
          { request: { httpMethod: "GET", path: "/mcp/unknown", header: [] }, resource: publicUrl },
        ]
      : []),
  ];

  test("links to the metadata document for the requested URL", async () => {
    const settings = { name: "Orders", publicUrl: new URL(publicUrl), issuers, scopes };
    const metadata = createResourceMetadata({ ...settings, paths: ["/mcp", "/report"] });
    const auth = createBearerAuth(rejectAll, { realm: "orders", resourceMetadata: metadata });
    const report = { path: "/report", open: false, handle: () => ({ httpStatus: 200, body: "ok" }) };
    await using gateway = await openEveryTransport({
      routes: (router) => router.service(GreenhouseService, { waterBed: () => ({}) }),
      requestPathPrefix: prefix,
      mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
      endpoints: [...metadata.endpoints, report],
      ...check(auth),
    });
    for (const transport of transportNames) {
      for (const { request, resource } of requests) {
        const refused = await gateway.ask(transport, { ...request, path: prefix + request.path });
        expect.soft([transport, request.path, refused.httpStatus]).toEqual([transport, request.path, 401]);
        const challenge = fieldValue(refused.header, "www-authenticate") ?? "";
        const url = new URL(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? "");
        // Clients also derive the URL (RFC 9728 §3.1).
        const { pathname, origin } = new URL(resource);
        expect.soft(url.href).toBe(`${origin}/.well-known/oauth-protected-resource${pathname === "/" ? "" : pathname}`);
        const document = await gateway.ask(transport, { httpMethod: "GET", path: url.pathname, header: [] });
        expect.soft(JSON.parse(String(document.body))).toMatchObject({ resource, authorization_servers: issuers });
      }
    }
  });
});
