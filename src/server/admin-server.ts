import { type BoundAddress, createGateway, type Endpoint } from "@protoport/gateway";
import type { Log } from "@protoport/telemetry/logs";
import type { MetricFamily } from "@protoport/telemetry/metrics";
import { explainListenError } from "./listen-error.ts";
import { type AdminAddress, socketPathOf } from "./setting-types.ts";

/** The server's current problems, by the component's name. The texts are for operators. */
export type ServerProblems = Readonly<Record<string, string>>;

/** The sources for the admin address. */
interface AdminSources {
  /** Returns the current metrics, for `/metrics`. */
  readonly collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>;
  /** Returns the current problems, for {@link problemsPath}. */
  readonly problems: () => ServerProblems | Promise<ServerProblems>;
}

/** The path on the admin address for the server's problems. The response is a JSON object. */
export const problemsPath = "/problems";

/**
 * Serves metrics and problems on a separate address without a credential, and logs the address.
 *
 * @throws Error that names the setting if listening fails
 */
export async function serveAdmin(
  at: AdminAddress,
  { collect, problems }: AdminSources,
  log: Pick<Log, "info">,
): Promise<BoundAddress & AsyncDisposable> {
  // Imports the module on demand, because not every server has metrics.
  const { createMetricsEndpoint } = await import("@protoport/telemetry/metrics");
  const admin = createGateway({
    routes: () => {},
    endpoints: [createMetricsEndpoint(collect), createProblemsEndpoint(problems)],
  });
  const path = socketPathOf(at.host);
  const bound = await admin.listen(path === undefined ? at : { path }).catch((reason: unknown) => {
    throw explainListenError(reason, at, "PLANTSTORE_ADMIN_ADDRESS");
  });
  log.info(bound, "serving metrics");
  return { ...bound, [Symbol.asyncDispose]: () => admin.close() };
}

function createProblemsEndpoint(problems: AdminSources["problems"]): Endpoint {
  const header = { "content-type": "application/json", "cache-control": "no-store" };
  return {
    path: problemsPath,
    open: true,
    handle: async () => ({ httpStatus: 200, header, body: JSON.stringify(await problems()) }),
  };
}
