import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { setTimeout as delay } from "node:timers/promises";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "../gen/es/grpc/health/v1/health_pb.ts";
import type { Readiness } from "./readiness.ts";

/** What `grpc.health.v1` answers about. */
export interface HealthOptions {
  readonly readiness: Readiness;
  /** The full names of the services it knows; they are all as well as the server is. */
  readonly services: readonly string[];
}

/** Milliseconds between two looks at the readiness for a watcher; a probe's usual period is ten times that. */
const watchIntervalMs = 1_000;

/**
 * Creates the implementation of `grpc.health.v1.Health` over the same readiness that `/readyz` tells.
 *
 * A watcher of a server that drains is told NOT_SERVING, and then its stream ends with `Unavailable`: an
 * open stream would otherwise hold up the drain until its deadline.
 */
export function createHealthService({ readiness, services }: HealthOptions): ServiceImpl<typeof Health> {
  const known = new Set(["", ...services]);
  const statusNow = (): Status => (readiness.obstacles().length === 0 ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!known.has(service)) throw new ConnectError("the service is not known here", Code.NotFound);
      return { status: statusNow() };
    },
    async *watch({ service }, context) {
      let told: Status | undefined;
      while (!readiness.draining.aborted) {
        const status = known.has(service) ? statusNow() : Status.SERVICE_UNKNOWN;
        if (status !== told) yield { status };
        told = status;
        await nextLook(readiness, context);
      }
      if (told !== Status.NOT_SERVING) yield { status: Status.NOT_SERVING };
      throw new ConnectError("the server is stopping", Code.Unavailable);
    },
  };
}

// Ends early when the server starts to drain; throws when the client has gone.
async function nextLook(readiness: Readiness, context: HandlerContext): Promise<void> {
  const signal = AbortSignal.any([readiness.draining, context.signal]);
  await delay(watchIntervalMs, undefined, { signal }).catch(() => undefined);
  context.signal.throwIfAborted();
}
