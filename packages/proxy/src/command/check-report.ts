import { describeBinding, surveyRestRoutes } from "@plantstore/gateway/rest";
import type { ProxyGateway } from "../create-proxy.ts";
import { defaultRestTimeoutMs } from "../upstreams/index.ts";
import type { ProxySettings } from "./proxy-settings.ts";
import type { UpstreamSettings } from "./upstream-settings.ts";

/** Formats what a proxy would serve, for `--check`. @param json - whether as JSON */
export function writeCheckReport({ services }: ProxyGateway, settings: ProxySettings, json: boolean): string {
  const names = services.map(({ typeName }) => typeName);
  const { bindings } = surveyRestRoutes(
    services.flatMap(({ methods }) => methods),
    settings.rest,
  ).routes;
  const routes = bindings.map(describeBinding);
  const timeouts = settings.upstreams.map((upstream) => ({ upstream: upstream.name, ...timeoutsOf(upstream) }));
  if (json) return JSON.stringify({ services: names, routes, timeouts });
  const lines = timeouts.map(({ restMs, otherMs }) => `REST ${nameTimeout(restMs)}, others ${nameTimeout(otherMs)}`);
  const [first, ...others] = new Set(lines);
  const listed =
    others.length === 0
      ? [`Timeouts of unary calls without a deadline: ${first}.`]
      : [
          "Timeouts of unary calls without a deadline:",
          ...lines.map((line, at) => `  ${timeouts[at]?.upstream}: ${line}`),
        ];
  return ["The proxy would serve:", ...indent(names), "", "REST routes:", ...indent(routes), "", ...listed].join("\n");
}

function timeoutsOf({ proxied: { timeoutMs, timeoutMaxMs } }: UpstreamSettings): {
  readonly restMs: number | undefined;
  readonly otherMs: number | undefined;
} {
  const otherMs = timeoutMs || timeoutMaxMs;
  return { restMs: timeoutMs === undefined ? (otherMs ?? defaultRestTimeoutMs) : otherMs, otherMs };
}

function nameTimeout(ms: number | undefined): string {
  return ms === undefined ? "none" : `${ms} ms`;
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}
