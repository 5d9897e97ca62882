import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { file_greenhouse_v1_greenhouse, GreenhouseService
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { createBearerAuth, createResourceMetadata, openTokenVerifier, principalKey
} from "../../../../auth/src/index.ts";
import { startAuthorizationServer } from "../../../../testing/src/auth/authorization-server.ts";
import type { AuthorizationServer } from "../../../../testing/src/auth/authorization-server.ts";
// oxfmt-ignore
import { createTempFolder, descriptorSetOf, freePort, openPython, projectFolder, quietLog, startGreenhouse
} from "@protoport/testing";
import { startProxyProcess } from "../../../../testing/src/gateway/proxy-process.ts";
import { createGateway } from "../../../src/index.ts";
import { createMcp } from "../../../src/mcp/index.ts";
import { greenhouse } from "./results.ts";
import { signInAndCall1, signInAndCall2, type SignInAndCall } from "./sign-in-clients.ts";

// The official MCP clients, which have no token, find out where to get one, sign in and call a tool.

const tools = ["greenhouse.v1.*"];
// The proxy's settings in protoport/docs/how-to/mcp.md.
const scopes = { GetReading: "orders:read", WaterBed: "orders:delete" };

interface ProtectedServer extends AsyncDisposable {
  readonly url: string;
}

async function startGateway({ issuer }: AuthorizationServer): Promise<ProtectedServer> {
  const publicUrl = new URL(`http://127.0.0.1:${await freePort()}/api`);
  const url = `${publicUrl.href}/mcp`;
  const verifier = await openTokenVerifier({ jwt: [{ issuer, audiences: [url], enforceScopes: true }] }, quietLog);
  if (verifier.kind === "problems") throw new Error(verifier.problems.join("; "));
  const options = { name: "Greenhouse", publicUrl, issuers: [issuer], scopes: Object.values(scopes), paths: ["/mcp"] };
  const metadata = createResourceMetadata(options);
  const auth = createBearerAuth(verifier.value, {
    realm: "greenhouse",
    resourceMetadata: metadata,
    requiredScope: (procedure) => new Map(Object.entries(scopes)).get(procedure.split("/").at(-1) ?? ""),
  });
  const gateway = createGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        waterBed: (_, { values }) => ({ note: values.get(principalKey)?.subject ?? "" }),
      }),
    requestPathPrefix: "/api",
    mcp: createMcp({ tools }),
    admit: auth.admit,
    endpoints: metadata.endpoints,
  });
  await gateway.listen({ host: "127.0.0.1", port: Number(publicUrl.port) });
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      verifier.value.close?.();
    },
  };
}

async function startProxy({ issuer }: AuthorizationServer): Promise<ProtectedServer> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(createTempFolder());
  const upstream = opened.use(await startGreenhouse({ waterBed: () => ({ note: "ada" }) }));
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  writeFileSync(folder.file("set.binpb"), descriptorSetOf(file_greenhouse_v1_greenhouse));
  const documented = blockOf("protoport/docs/how-to/mcp.md", "yaml")
    .replaceAll("https://shop.example", baseUrl)
    .replaceAll("https://id.example", issuer)
    .replaceAll("shop.v1.OrderService.GetOrder", "greenhouse.v1.GreenhouseService.GetReading")
    .replaceAll("shop.v1.OrderService.DeleteOrder", "greenhouse.v1.GreenhouseService.WaterBed")
    .replaceAll("shop.v1", "greenhouse.v1");
  const upstreamUrl = `http://${upstream.address.address}:${upstream.address.port}`;
  writeFileSync(
    folder.file("proxy.yaml"),
    `listen: { port: ${port} }
drain: { delayMs: 0 }
upstreams: [{ addresses: [${upstreamUrl}], descriptors: ${folder.file("set.binpb")} }]
${documented}
`,
  );
  opened.use(await startProxyProcess(["--config", folder.file("proxy.yaml")]));
  const all = opened.move();
  return { url: `${baseUrl}/mcp`, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

function blockOf(page: string, language: string): string {
  const text = readFileSync(join(projectFolder, page), "utf8");
  return new RegExp(`^\`\`\`${language}\n([^]*?)\n\`\`\`$`, "m").exec(text)?.[1] ?? "";
}

async function callFromPython(mode: string, url: string, tool: string): Promise<unknown> {
  const folder = import.meta.dirname;
  const programs = await openPython(join(folder, "requirements.txt"));
  const args = [join(folder, "sign_in.py"), url, tool, mode];
  const { stdout } = await promisify(execFile)(join(programs, "python"), args, { timeout: 60_000 });
  return JSON.parse(stdout);
}

const clients: readonly { readonly name: string; readonly call: SignInAndCall }[] = [
  { name: "the TypeScript client 2", call: signInAndCall2 },
  { name: "the TypeScript SDK 1", call: signInAndCall1 },
  { name: "the Python client", call: (url, tool) => callFromPython("2026-07-28", url, tool) },
  { name: "the Python client (with initialize)", call: (url, tool) => callFromPython("legacy", url, tool) },
];

describe.each([
  { kind: "a gateway below a path", start: startGateway },
  { kind: "a proxy", start: startProxy },
])("the sign-in to $kind", ({ start }) => {
  test.each(clients)("lets $name call a tool with only the URL configured", async ({ call }) => {
    using authorization = await startAuthorizationServer();
    await using server = await start(authorization);
    expect(await call(server.url, `${greenhouse}_WaterBed`)).toEqual({ note: "ada" });
    // The token is for this server only (RFC 8707).
    const requested = { resource: server.url, scope: "orders:read orders:delete" };
    expect(authorization.consentRequests).toMatchObject([requested]);
    expect(authorization.tokenRequests).toMatchObject([{ grant_type: "authorization_code", resource: server.url }]);
  });

  test.each(clients)("lets $name ask the user for a missing scope", async ({ call }) => {
    using authorization = await startAuthorizationServer();
    // The user first consents to reading only.
    authorization.grant = (requested) => (authorization.consentRequests.length === 1 ? "orders:read" : requested);
    await using server = await start(authorization);
    expect(await call(server.url, `${greenhouse}_WaterBed`)).toEqual({ note: "ada" });
    expect(authorization.consentRequests).toHaveLength(2);
    expect(authorization.consentRequests[1]?.["scope"]?.split(" ")).toContain("orders:delete");
    expect(authorization.consentRequests.every(({ resource }) => resource === server.url)).toBe(true);
  });
});
