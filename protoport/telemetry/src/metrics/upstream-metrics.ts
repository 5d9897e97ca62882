import { type CallObserver, createCallDurations, durationBounds } from "../conventions/index.ts";
import { addReloadGauges, type MeasuredReload } from "./gateway-metrics.ts";
import type { Metrics } from "./metrics.ts";

/** An upstream that is measured. */
export interface MeasuredUpstream {
  /** The metrics' label `upstream`, unique per upstream. */
  readonly name: string;
  /** An upstream from `@protoport/proxy/client`. */
  readonly upstream: {
    readonly name: string;
    readonly load: {
      readonly connections: number;
      readonly calls: number;
      readonly waitingCalls: number;
      readonly refusals: Readonly<Record<string, number>>;
    };
  };
}

/**
 * Adds metrics for a proxy's upstreams, which may be added and removed later. The metrics are connections, active,
 * queued and rejected calls, the call duration by method and code, the time in the queue, and retries.
 *
 * @returns the proxy's callback `onUpstreamCall`, which records call durations, queue times and retries
 */
export function measureUpstreams(metrics: Metrics, upstreams: readonly MeasuredUpstream[]): CallObserver {
  const gauges = [
    ["connections", "{connection}", "Open connections to upstreams", "connections"],
    ["requests.active", "{request}", "Calls to upstreams in progress", "calls"],
    ["requests.waiting", "{request}", "Calls queued for an upstream connection or stream", "waitingCalls"],
  ] as const;
  for (const [name, unit, description, key] of gauges) {
    metrics.gauge({ name: `gateway.upstream.${name}`, unit, description }, () =>
      upstreams.map(({ name: label, upstream }) => ({ attributes: { upstream: label }, value: upstream.load[key] })),
    );
  }
  metrics.observedCounter(
    {
      name: "gateway.upstream.refusals",
      unit: "{request}",
      description: "Calls rejected because a reachable upstream had no free stream",
    },
    () =>
      upstreams.flatMap(({ name, upstream }) =>
        Object.entries(upstream.load.refusals).map(([reason, value]) => ({
          attributes: { upstream: name, reason },
          value,
        })),
      ),
  );
  return recordCalls(metrics, upstreams);
}

function recordCalls(metrics: Metrics, upstreams: readonly MeasuredUpstream[]): CallObserver {
  // The labels and the last index of each upstream. A reload may rename, move or remove upstreams.
  const known = new WeakMap<object, { readonly at: number; readonly labels: { readonly upstream: string } }>();
  const labelsOf = (upstream: { readonly name: string }): { readonly upstream: string } => {
    const last = known.get(upstream);
    const measured = last && upstreams[last.at];
    if (last && measured?.upstream === upstream && measured.name === last.labels.upstream) return last.labels;
    const at = upstreams.findIndex((one) => one.upstream === upstream);
    const name = upstreams[at]?.name ?? last?.labels.upstream ?? upstream.name;
    const labels = name === last?.labels.upstream ? last.labels : { upstream: name };
    known.set(upstream, { at, labels });
    return labels;
  };
  // The labels identify the upstream, because a renamed upstream needs other series.
  const observe = createCallDurations(metrics, (labels: { readonly upstream: string }) => labels);
  const waits = metrics.histogram(
    {
      name: "gateway.upstream.queue.duration",
      unit: "s",
      description: "Time that queued calls waited for an upstream connection or stream",
    },
    durationBounds,
  );
  const retries = metrics.counter({
    name: "gateway.upstream.retries",
    unit: "{attempt}",
    description: "Attempts of calls to upstreams after the first one",
  });
  return (call) => {
    const labels = labelsOf(call.upstream);
    const record = observe({ upstream: labels, method: call.method });
    return (end) => {
      record(end);
      if (end.queuedMs > 0) waits.with(labels).record(end.queuedMs / 1_000);
      if (end.retries > 0) retries.with(labels).add(end.retries);
    };
  };
}

/** Counts and conflicts of an upstream's descriptor reloads. */
interface MeasuredDescriptors extends MeasuredReload {
  readonly successes: number;
  readonly failures: number;
  /** The services, routes and tools of this upstream that another upstream serves instead. */
  readonly conflicts: readonly string[];
}

/** The properties of a proxy from `createProxy` in `@protoport/proxy` that are measured. */
export interface MeasuredProxy {
  /** Each upstream's descriptor reloads. */
  readonly descriptorReloads: readonly MeasuredDescriptors[];
}

/**
 * Adds metrics for the reloads of each upstream's descriptors. Gauges record whether the last reload succeeded, the
 * time of the last success and the number of conflicts, and a counter records the reloads.
 *
 * @param upstreams - each upstream's label `upstream`, in the proxy's order
 */
export function measureDescriptors(metrics: Metrics, upstreams: readonly string[], proxy: MeasuredProxy): void {
  const reloads = () =>
    upstreams.flatMap((upstream, index) => {
      const reload = proxy.descriptorReloads[index];
      return reload === undefined ? [] : [{ attributes: { upstream }, reload }];
    });
  addReloadGauges(metrics, "gateway.descriptors.reload", "the descriptors of an upstream", reloads);
  metrics.observedCounter(
    {
      name: "gateway.descriptors.reloads",
      unit: "{reload}",
      description: "Reads of the descriptors of an upstream, by result",
    },
    () =>
      reloads().flatMap(({ attributes, reload: { successes, failures } }) => [
        { attributes: { ...attributes, result: "success" }, value: successes },
        { attributes: { ...attributes, result: "failure" }, value: failures },
      ]),
  );
  metrics.gauge(
    {
      name: "gateway.descriptors.conflicts",
      unit: "{conflict}",
      description: "Services, routes and tools that an upstream offers and that belong to another",
    },
    () => reloads().map(({ attributes, reload: { conflicts } }) => ({ attributes, value: conflicts.length })),
  );
}
