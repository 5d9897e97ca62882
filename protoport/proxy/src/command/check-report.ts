import type { DescService } from "@bufbuild/protobuf";
import { createNameFilter, describeBinding, procedureOf, selectorOf, checkRestRoutes } from "@protoport/gateway/rest";
import type { ProxiedUpstreamOptions, ProxyGateway } from "../create-proxy.ts";
import { defaultRestTimeoutMs } from "../upstreams/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";
import type { ServingParts } from "./serving-parts.ts";

/** Formats the report for `--check`. @param json - whether the report is JSON */
export function writeCheckReport(
  { services, rest }: ProxyGateway,
  { settings, upstreams, accessChecks: { isOpen } }: ServingParts,
  json: boolean,
): string {
  const names = services.map(({ typeName }) => typeName);
  const methods = services.flatMap((service) => service.methods);
  const { bindings } = checkRestRoutes(methods, rest).routes;
  const routes = bindings.map(describeBinding);
  const upstreamNames = [...upstreams.keys()];
  const timeouts = settings.upstreams.map((each, at) => ({ upstream: upstreamNames[at], ...timeoutsOf(each) }));
  const methodTimeouts = methodTimeoutsOf(services, settings);
  const tools = toolsOf(services, settings);
  const open = isOpen && methods.filter((method) => isOpen(procedureOf(method))).map(selectorOf);
  if (json) return JSON.stringify({ services: names, routes, tools, open, timeouts, methodTimeouts });
  const lines = timeouts.map(({ restMs, otherMs }) => `REST ${nameTimeout(restMs)}, others ${nameTimeout(otherMs)}`);
  const [first, ...others] = new Set(lines);
  const listed =
    others.length === 0
      ? [`Timeouts of unary calls without a deadline: ${first}.`]
      : [
          "Timeouts of unary calls without a deadline:",
          ...lines.map((line, at) => `  ${timeouts[at]?.upstream}: ${line}`),
        ];
  const ofMethods = indent(methodTimeouts.map(({ method, ms }) => `${method}: ${nameTimeout(ms)}`));
  const sections = [
    "The proxy would serve:",
    ...indent(names),
    "",
    "REST routes:",
    ...indent(routes),
    "",
    ...(tools.length === 0 ? [] : ["Tools over MCP:", ...indent(tools), ""]),
    ...(open === undefined ? [] : ["RPCs without a credential:", ...indent(open.length === 0 ? ["none"] : open), ""]),
  ];
  return [...sections, ...listed, ...ofMethods].join("\n");
}

/** Returns the RPCs that are tools for AI agents. */
function toolsOf(services: readonly DescService[], { tools = [] }: ProxySettings): readonly string[] {
  const isSelected = createNameFilter(tools);
  const callable = services
    .flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming");
  return callable.map(selectorOf).filter((rpc) => isSelected?.(rpc) === true);
}

/** Returns the timeouts that `methodConfig` sets for unary RPCs. */
function methodTimeoutsOf(
  services: readonly DescService[],
  { upstreams: [first] }: ProxySettings,
): readonly { readonly method: string; readonly ms: number }[] {
  const unary = services.flatMap(({ methods }) => methods).filter(({ methodKind }) => methodKind === "unary");
  return unary.flatMap((method) => {
    const ms = first?.methodSettings?.(method)?.timeoutMs;
    return ms === undefined ? [] : [{ method: selectorOf(method), ms }];
  });
}

function timeoutsOf({ timeoutMs, maxTimeoutMs }: ProxiedUpstreamOptions): {
  readonly restMs: number | undefined;
  readonly otherMs: number | undefined;
} {
  const otherMs = timeoutMs ? Math.min(timeoutMs, maxTimeoutMs ?? timeoutMs) : maxTimeoutMs;
  return { restMs: timeoutMs === undefined ? (otherMs ?? defaultRestTimeoutMs) : otherMs, otherMs };
}

function nameTimeout(ms: number | undefined): string {
  return ms === undefined ? "none" : `${ms} ms`;
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}
