import { isDeepStrictEqual } from "node:util";
import type { DescService } from "@bufbuild/protobuf";
import type { CommandOutput } from "@protoport/command-line";
import { createDocsPage } from "@protoport/docs-page";
import { type Endpoint, isAddressOrNetwork, type RestOptions } from "@protoport/gateway";
import { messageOf } from "@protoport/gateway/errors";
import type { ServerPart } from "@protoport/gateway/health";
import type { ProtocolExtension } from "@protoport/gateway/mcp";
import { createOpenApiAsync, documentBaseOf, type OpenApiBase, type OpenApiOptions } from "@protoport/gateway/openapi";
import type { openValidation } from "@protoport/gateway/validation";
import type { ProxyGateway } from "../create-proxy.ts";
import { createUpstream, TlsFilesError, type Upstream } from "../upstreams/index.ts";
import { type AccessChecks, challengedPathsOf, mcpPath, openAccessChecks } from "./access-checks.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The objects that the settings define, such as upstreams. A configuration reload replaces the objects. */
export interface ServingParts {
  readonly settings: ProxySettings;
  /**
   * The upstreams by name, in the order of the settings. The name, for metrics and messages, is the first address. A
   * second upstream with the same address is named `ADDRESS#2`.
   */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly docs: ProxyDocs | undefined;
  readonly accessChecks: AccessChecks;
  readonly mcp: ProtocolExtension | undefined;
  readonly validation: Awaited<ReturnType<typeof openValidation>> | undefined;
}

/**
 * Opens the parts from settings. Upstreams with unchanged connection settings are shared with the previous parts. The
 * access checks are also shared if their settings did not change. Shared access checks keep their keys, caches and
 * rates, and read their files again.
 *
 * @param served - returns the services and REST options in use, for the OpenAPI document
 * @throws SettingsProblem for an address, a name, credentials or a file that is not valid
 */
export async function openParts(
  settings: ProxySettings,
  output: CommandOutput,
  served: () => Pick<ProxyGateway, "services" | "rest"> | undefined,
  previous?: ServingParts,
): Promise<ServingParts> {
  requireProxyAddresses(settings);
  const shared =
    previous !== undefined && hasEqualAccessSettings(previous.settings, settings) ? previous.accessChecks : undefined;
  const accessChecks = shared ?? (await openAccessChecks(settings, output));
  shared?.reload();
  try {
    const validation = await loadValidation(settings);
    const mcp = await openMcp(settings, validation, accessChecks);
    const described = {
      info: settings.info,
      operationIds: settings.operationIds,
      ...accessChecks.openApiSecurity,
      jsonOptions: settings.json,
      ...(mcp && { mcp }),
      ...(validation && { validation }),
    };
    const docs = settings.hasDocs ? createProxyDocs(served, described, output.err) : undefined;
    return { settings, upstreams: openUpstreams(settings, previous), docs, accessChecks, mcp, validation };
  } catch (error) {
    if (shared === undefined) accessChecks.close();
    throw error;
  }
}

/** @throws SettingsProblem for a trusted proxy that is neither an address nor a network */
function requireProxyAddresses({ trustedProxies = [], problemAt }: ProxySettings): void {
  for (const [at, entry] of trustedProxies.entries()) {
    if (isAddressOrNetwork(entry)) continue;
    throw problemAt(`trustedProxies[${at}]`, `must be an IP address or a network such as 10.0.0.0/8, got "${entry}"`);
  }
}

function hasEqualAccessSettings(before: ProxySettings, after: ProxySettings): boolean {
  return (
    isDeepStrictEqual(before.authentication, after.authentication) &&
    isDeepStrictEqual(challengedPathsOf(before), challengedPathsOf(after)) &&
    isDeepStrictEqual(before.rateLimit, after.rateLimit)
  );
}

async function loadValidation({ validates }: ProxySettings): Promise<ServingParts["validation"]> {
  if (validates === "none") return undefined;
  const validation = await import("@protoport/gateway/validation");
  return await validation.openValidation({ untrusted: validates === "upstreams" });
}

async function openMcp(
  { tools, paramHeaders }: ProxySettings,
  validation: ServingParts["validation"],
  { isListed }: AccessChecks,
): Promise<ProtocolExtension | undefined> {
  if (tools === undefined) return undefined;
  const { createMcp } = await import("@protoport/gateway/mcp");
  const serverInfo = { name: "protoport", version: proxyVersion() };
  return createMcp({
    tools,
    path: mcpPath,
    serverInfo,
    ...(paramHeaders && { paramHeaders }),
    ...(validation && { validation }),
    ...(isListed && { isListed }),
  });
}

/** Closes the parts that `others` does not share. Calls in flight have `drainMs` milliseconds to finish. */
export async function closeParts(
  { accessChecks, upstreams }: ServingParts,
  drainMs: number,
  others?: ServingParts,
): Promise<void> {
  if (others?.accessChecks !== accessChecks) {
    if (drainMs > 0) accessChecks.closeWhenIdle();
    else accessChecks.close();
  }
  const shared = new Set(others?.upstreams.values());
  await Promise.all([...upstreams.values()].filter((each) => !shared.has(each)).map((each) => each.drain(drainMs)));
}

function openUpstreams({ upstreams, problemAt }: ProxySettings, previous?: ServingParts): ServingParts["upstreams"] {
  // A lookup by JSON keys avoids comparing all pairs of upstreams, which takes quadratic time.
  const shareable = Map.groupBy(previous?.upstreams.values() ?? [], (_, at) =>
    JSON.stringify(previous?.settings.upstreams[at]?.upstream),
  );
  const opened = new Map<string, Upstream>();
  // The last number of each address avoids trying all numbers again, which takes quadratic time.
  const counts = new Map<string, number>();
  for (const [at, { upstream: options }] of upstreams.entries()) {
    const [first = ""] = [options.addresses].flat();
    let name = first;
    let count = counts.get(first) ?? 1;
    // A loop, because a Unix socket's path may end like the second name of another address.
    while (opened.has(name)) name = `${first}#${++count}`;
    counts.set(first, count);
    try {
      opened.set(name, shareable.get(JSON.stringify(options))?.shift() ?? createUpstream(options));
    } catch (error) {
      const member = error instanceof TlsFilesError ? "tls.cert" : "addresses[0]";
      throw problemAt(`upstreams[${at}].${member}`, `is not valid: ${messageOf(error)}`);
    }
  }
  return opened;
}

/** Returns the dependencies that determine readiness. If there are several upstreams, each is listed too. */
export function readinessOf(
  { settings, upstreams }: ServingParts,
  proxy: ProxyGateway | undefined,
): Readonly<Record<string, ServerPart>> {
  const isReachable = [...upstreams.values()].some(({ ready }) => ready);
  const several = upstreams.size < 2 ? [] : [...upstreams];
  const parts = several.map(([name, { ready }], at): [string, ServerPart] => {
    const { problem, lastSuccessMs } = proxy?.descriptorReloads[at] ?? {};
    // A failed reload does not affect readiness, because the previous descriptors stay in use.
    const neverRead = lastSuccessMs === undefined ? problem : undefined;
    return [
      `upstream ${name}`,
      { isOptional: !settings.requiresAll, problem: neverRead ?? (ready ? undefined : "unreachable") },
    ];
  });
  return {
    descriptors: { problem: proxy === undefined ? "the descriptors are not loaded yet" : undefined },
    upstream: { problem: isReachable ? undefined : "no upstream is reachable" },
    ...Object.fromEntries(parts),
  };
}

/** The API description's endpoints. */
interface ProxyDocs {
  readonly endpoints: readonly Endpoint[];
  /** Discards the description. The next request creates a new description. */
  renew(): void;
}

/**
 * Creates a proxy's description.
 *
 * @param getServed - returns the served services. Called at the first request
 * @param warn - called if operation ids have other names than in the options, or the document has no operations
 */
export function createProxyDocs(
  getServed: () => { readonly services: readonly DescService[]; readonly rest: RestOptions } | undefined,
  {
    info = {},
    ...further
  }: Pick<OpenApiBase, "info"> &
    Pick<
      OpenApiOptions,
      "describeSecurity" | "jsonOptions" | "mcp" | "operationIds" | "securitySchemes" | "validation"
    >,
  warn: (text: string) => void,
): ProxyDocs {
  const create = (): readonly Endpoint[] =>
    createDocsPage({
      document: () => {
        const { services = [], rest = {} } = getServed() ?? {};
        const { securitySchemes } = further;
        const options: OpenApiOptions = {
          // The page sends credentials to the servers in the document, so an upstream must not add a server.
          ...documentBaseOf(services, { info, servers: [{ url: "/" }], ...(securitySchemes && { securitySchemes }) }),
          rest,
          ...further,
        };
        // Descriptors that an upstream sent after the start may have equal operation ids.
        return createOpenApiAsync(services, options)
          .catch((error: unknown) => {
            warn(`the document at /openapi.json has operationIds: full, because ${messageOf(error)}`);
            return createOpenApiAsync(services, { ...options, operationIds: "full" });
          })
          .catch((error: unknown) => {
            warn(`the document at /openapi.json has no operations, because ${messageOf(error)}`);
            return createOpenApiAsync([], { ...options, rest: {} });
          });
      },
      open: true,
    });
  let current = create();
  return {
    endpoints: current.map((endpoint, at) => ({
      ...endpoint,
      handle: (request) => (current[at] ?? endpoint).handle(request),
    })),
    renew: () => {
      current = create();
    },
  };
}

import manifest from "../../package.json" with { type: "json" };

/** Returns this package's version, which the build inlines from package.json. */
export function proxyVersion(): string {
  return manifest.version;
}
