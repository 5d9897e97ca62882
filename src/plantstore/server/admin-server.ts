import { createGateway } from "../../gateway/index.ts";
import { createMetricsEndpoint, type MetricFamily } from "../../operators/telemetry/index.ts";
import type { AdminAddress } from "./setting-readers.ts";

/** A listening admin address. */
export interface AdminServer extends AsyncDisposable {
  readonly address: string;
  readonly port: number;
}

/**
 * Serves `/metrics` on an address of its own, without a credential.
 *
 * @param collect - returns the metrics as they are now
 * @throws Error naming the address when it cannot be listened on
 */
export async function openAdminServer(
  at: AdminAddress,
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
): Promise<AdminServer> {
  const admin = createGateway({ routes: () => {}, endpoints: [createMetricsEndpoint(collect)] });
  const bound = await admin.listen(at).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`PLANTSTORE_ADMIN_ADDRESS cannot be listened on: ${reason}`, { cause });
  });
  return { ...bound, [Symbol.asyncDispose]: () => admin.close() };
}
