import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { type FaultReporter, guardCallback } from "@protoport/gateway/forward";
import type { CallEnd } from "../client/index.ts";
import type { Upstream } from "../upstreams/index.ts";

/** A call to an upstream, at its start. */
export interface UpstreamCall {
  readonly upstream: Upstream;
  readonly method: DescMethod;
  /** The context values from the caller's request. */
  readonly contextValues: ContextValues;
}

/**
 * Called when a call to an upstream starts, before its header fields are set. May return a function that is called once
 * when the call ends, after its last attempt.
 */
export type UpstreamCallObserver = (call: UpstreamCall) => ((end: CallEnd) => void) | undefined;

/** Wraps an observer, so that its errors are reported and not thrown. */
export function guardObserver(
  observer: UpstreamCallObserver | undefined,
  report: FaultReporter,
): UpstreamCallObserver | undefined {
  if (observer === undefined) return undefined;
  const fail = guardCallback("onUpstreamCall", rethrow, report);
  return (call) => {
    try {
      const onEnd = observer(call);
      if (onEnd === undefined) return undefined;
      return (end) => {
        try {
          onEnd(end);
        } catch (error) {
          fail?.(error);
        }
      };
    } catch (error) {
      fail?.(error);
      return undefined;
    }
  };
}

function rethrow(error: unknown): void {
  throw error;
}
