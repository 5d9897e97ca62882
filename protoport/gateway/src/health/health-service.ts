import type { ServiceImpl } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";
import { type Health, HealthCheckResponse_ServingStatus as Status } from "../protobuf/gen/grpc/health/v1/health_pb.ts";
import { type OptionNames, refuseUnknownOptions, required } from "../http/index.ts";
import type { Readiness } from "./readiness.ts";

/** Options for {@link createHealthService}. */
export interface HealthOptions {
  readonly readiness: Readiness;
  /** The full names of the known services. All services share the server's health. */
  readonly services: readonly string[];
}

const healthOptionNames: OptionNames<HealthOptions> = { readiness: required, services: required };

/**
 * Maximum bytes in a `grpc.health.v1.Health` request. Pass this limit as `readMaxBytes` where the service is
 * registered.
 *
 * The full name of any service fits 512 bytes. Health checks need no credential. With a larger limit, any client could
 * fill the server's memory by opening many streams.
 */
export const maxHealthRequestBytes = 512;

/** Milliseconds between two readiness checks for watchers. Probes usually run every ten seconds. */
const healthIntervalMs = 1_000;

/** Maximum number of watching streams across all connections. A stream takes 35 KB and needs no credential. */
const maxWatchers = 1_000;

/** A stream that watches the health of a service. */
interface Watcher {
  /** The last status that was sent to the client. */
  sent: Status | undefined;
  /** Wakes a waiting stream, which then checks the status again. */
  wake: () => void;
}

/**
 * Creates the `grpc.health.v1.Health` implementation, which reports the same readiness as `/readyz`.
 *
 * When the server drains, watchers get NOT_SERVING and their streams end with `Unavailable`, because open streams would
 * delay the drain until its deadline. A watcher beyond the limit gets `ResourceExhausted`.
 *
 * @throws TypeError for unknown or missing options
 */
export function createHealthService(options: HealthOptions): ServiceImpl<typeof Health> {
  refuseUnknownOptions(options, healthOptionNames, "createHealthService");
  const { readiness, services } = options;
  const knownServices = new Set(["", ...services]);
  const currentStatus = (): Status => (readiness.obstacles().length === 0 ? Status.SERVING : Status.NOT_SERVING);
  const watchers = new Set<Watcher>();
  let timer: NodeJS.Timeout | undefined;
  readiness.draining.addEventListener("abort", wakeAll);

  function addWatcher(signal: AbortSignal): Watcher {
    if (watchers.size >= maxWatchers)
      throw problem("ERR_HEALTH_WATCHERS", "too many clients are watching the health of this server");
    const watcher: Watcher = { sent: undefined, wake: () => undefined };
    watchers.add(watcher);
    timer ??= setInterval(wakeAll, healthIntervalMs).unref();
    signal.addEventListener("abort", () => removeWatcher(watcher));
    return watcher;
  }

  function removeWatcher(watcher: Watcher): void {
    watchers.delete(watcher);
    watcher.wake();
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function wakeAll(): void {
    for (const { wake } of watchers) wake();
  }

  return {
    check({ service }) {
      if (!knownServices.has(service)) throw problem("ERR_HEALTH_SERVICE", "the server does not have this service");
      return { status: currentStatus() };
    },
    async *watch({ service }, { signal }) {
      signal.throwIfAborted();
      const watcher = addWatcher(signal);
      while (!readiness.draining.aborted) {
        signal.throwIfAborted();
        const status = knownServices.has(service) ? currentStatus() : Status.SERVICE_UNKNOWN;
        if (status === watcher.sent) await new Promise<void>((resolve) => (watcher.wake = resolve));
        else yield { status: (watcher.sent = status) };
      }
      if (watcher.sent !== Status.NOT_SERVING) yield { status: Status.NOT_SERVING };
      throw problem("ERR_SERVER_STOPPING", "the server is stopping");
    },
  };
}
