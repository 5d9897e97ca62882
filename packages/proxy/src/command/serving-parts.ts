import { isDeepStrictEqual } from "node:util";
import type { CommandOutput } from "@plantstore/command-line";
import { isAddressOrNetwork } from "@plantstore/gateway";
import { messageOf } from "@plantstore/http";
import type { ServerPart } from "@plantstore/gateway/health";
import type { ProtocolExtension } from "@plantstore/mcp";
import type { openValidation } from "@plantstore/validation";
import { createUpstream, TlsFilesError, type Upstream } from "../upstreams/index.ts";
import type { ProxyGateway } from "../create-proxy.ts";
import { type AccessChecks, challengedPathsOf, mcpPath, openAccessChecks } from "./access-checks.ts";
import { createProxyDocs, type ProxyDocs } from "./proxy-docs.ts";
import { packageVersion } from "./package-version.ts";
import type { ProxySettings } from "./proxy-settings.ts";

/** The objects that the settings define, such as upstreams. A configuration reload replaces the objects. */
export interface ServingParts {
  readonly settings: ProxySettings;
  readonly upstreams: readonly NamedUpstream[];
  readonly docs: ProxyDocs | undefined;
  readonly accessChecks: AccessChecks;
  readonly mcp: ProtocolExtension | undefined;
  readonly validation: Awaited<ReturnType<typeof openValidation>> | undefined;
}

/** An upstream with its name in metrics. */
export interface NamedUpstream {
  readonly name: string;
  readonly upstream: Upstream;
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
  requireAddresses(settings);
  const shared =
    previous !== undefined && hasEqualAccessSettings(previous.settings, settings) ? previous.accessChecks : undefined;
  const accessChecks = shared ?? (await openAccessChecks(settings, output));
  shared?.reload();
  try {
    const validation = await loadValidation(settings);
    const mcp = await openMcp(settings, validation);
    const jsonOptions = settings.json;
    const described = {
      ...accessChecks.openApiSecurity,
      jsonOptions,
      ...(mcp && { mcp }),
      ...(validation && { validation }),
    };
    const docs = settings.hasDocs ? createProxyDocs(served, described) : undefined;
    return { settings, upstreams: openUpstreams(settings, previous), docs, accessChecks, mcp, validation };
  } catch (error) {
    if (shared === undefined) accessChecks.close();
    throw error;
  }
}

/** @throws SettingsProblem for a trusted proxy that is neither an address nor a network */
function requireAddresses({ trustedProxies = [], problemAt }: ProxySettings): void {
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
  const validation = await import("@plantstore/validation");
  return await validation.openValidation({ untrusted: validates === "upstreams" });
}

async function openMcp(
  { tools }: ProxySettings,
  validation: ServingParts["validation"],
): Promise<ProtocolExtension | undefined> {
  if (tools === undefined) return undefined;
  const { createMcp } = await import("@plantstore/mcp");
  const serverInfo = { name: "plantstore-proxy", version: packageVersion() };
  return createMcp({ tools, path: mcpPath, serverInfo, ...(validation && { validation }) });
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
  const isShared = ({ upstream }: NamedUpstream): boolean =>
    others?.upstreams.some((other) => other.upstream === upstream) === true;
  await Promise.all(upstreams.filter((each) => !isShared(each)).map(({ upstream }) => upstream.drain(drainMs)));
}

function openUpstreams({ upstreams, problemAt }: ProxySettings, previous?: ServingParts): readonly NamedUpstream[] {
  // A lookup by JSON keys avoids comparing all pairs of upstreams, which takes quadratic time.
  const shareable = Map.groupBy(previous?.upstreams ?? [], (_, at) =>
    JSON.stringify(previous?.settings.upstreams[at]?.connection),
  );
  return upstreams.map(({ name, connection }, at) => {
    const shared = shareable.get(JSON.stringify(connection))?.shift();
    if (shared !== undefined) return { name, upstream: shared.upstream };
    try {
      return { name, upstream: createUpstream(connection) };
    } catch (error) {
      const member = error instanceof TlsFilesError ? "tls.cert" : "addresses[0]";
      throw problemAt(`upstreams[${at}].${member}`, `is not valid: ${messageOf(error)}`);
    }
  });
}

/** Returns the dependencies that determine readiness. If there are several upstreams, each is listed too. */
export function readinessOf(
  { settings, upstreams }: ServingParts,
  proxy: ProxyGateway | undefined,
): Readonly<Record<string, ServerPart>> {
  const isReachable = upstreams.some(({ upstream }) => upstream.ready);
  const several = upstreams.length < 2 ? [] : upstreams;
  const parts = several.map(({ name, upstream }, at): [string, ServerPart] => {
    const { problem, lastSuccessMs } = proxy?.descriptorReloads[at] ?? {};
    // A failed reload does not affect readiness, because the previous descriptors stay in use.
    const neverRead = lastSuccessMs === undefined ? problem : undefined;
    return [
      `upstream ${name}`,
      { isOptional: !settings.requiresAll, problem: neverRead ?? (upstream.ready ? undefined : "unreachable") },
    ];
  });
  return {
    descriptors: { problem: proxy === undefined ? "the descriptors are not loaded yet" : undefined },
    upstream: { problem: isReachable ? undefined : "no upstream is reachable" },
    ...Object.fromEntries(parts),
  };
}
