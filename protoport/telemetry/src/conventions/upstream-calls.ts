import type { DescMethod } from "@bufbuild/protobuf";
import type { Code, ContextValues } from "@connectrpc/connect";
import { durationBounds, type Attributes, type Instruments } from "./instruments.ts";
import { grpcStatusOf } from "./request-attributes.ts";

/** A proxy's call to an upstream, which `createProxy` passes to `onUpstreamCall`. */
export interface MeasuredCall {
  readonly upstream: { readonly name: string };
  readonly method: DescMethod;
  readonly contextValues: ContextValues;
}

/** The result of a {@link MeasuredCall} after its last attempt. */
export interface MeasuredCallEnd {
  readonly error: { readonly code: Code } | undefined;
  readonly durationMs: number;
  /** Milliseconds for which the call waited for a connection or a stream. */
  readonly queuedMs: number;
  /** Number of attempts after the first attempt. */
  readonly retries: number;
}

/** A callback for `createProxy`'s `onUpstreamCall`. */
export type CallObserver = (call: MeasuredCall) => (end: MeasuredCallEnd) => void;

/** Returns a method name in metrics and spans, such as `greenhouse.v1.GreenhouseService/WaterBed`. */
export function rpcMethodOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Returns the attributes for the end of a client's call. Every code except OK is an error. */
export function callEndAttributes(code: Code | undefined): Attributes {
  const status = grpcStatusOf(code);
  return { "rpc.response.status_code": status, ...(code !== undefined && { "error.type": status }) };
}

/**
 * Creates an observer that records call durations in `rpc.client.call.duration`, with the upstream's attributes.
 *
 * @param attributesOf - called once per upstream, method and code
 */
export function createCallDurations<Upstream extends object>(
  metrics: Pick<Instruments, "histogram">,
  attributesOf: (upstream: Upstream) => Attributes,
): (call: Pick<MeasuredCall, "method"> & { readonly upstream: Upstream }) => ReturnType<CallObserver> {
  const durations = metrics.histogram(
    { name: "rpc.client.call.duration", unit: "s", description: "Duration of calls to upstreams, with all attempts" },
    durationBounds,
  );
  type Series = ReturnType<typeof durations.with>;
  // The maps are weak, because a descriptor reload replaces the methods.
  const byUpstream = new WeakMap<object, WeakMap<DescMethod, Map<Code | undefined, Series>>>();
  return ({ upstream, method }) => {
    let byMethod = byUpstream.get(upstream);
    if (byMethod === undefined) byUpstream.set(upstream, (byMethod = new WeakMap()));
    let byCode = byMethod.get(method);
    if (byCode === undefined) byMethod.set(method, (byCode = new Map()));
    const known = byCode;
    return ({ error, durationMs }) => {
      let series = known.get(error?.code);
      if (series === undefined) {
        const rpc = { "rpc.system.name": "grpc", "rpc.method": rpcMethodOf(method) };
        series = durations.with({ ...attributesOf(upstream), ...rpc, ...callEndAttributes(error?.code) });
        known.set(error?.code, series);
      }
      series.record(durationMs / 1_000);
    };
  };
}
