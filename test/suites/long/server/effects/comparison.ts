import { Differs } from "../../../../../protoport/testing/src/comparison.ts";
import type { ConfigurationSources } from "../../../../../src/server/index.ts";
import { type ConfiguredServer, startConfigured } from "../../../../support/server/start-configured.ts";

export type Environment = ConfigurationSources["environment"];

/** Starts one server after the other, and fails unless they differ. */
export async function compare(
  off: Environment,
  on: Environment,
  observe: (server: ConfiguredServer) => unknown,
): Promise<Differs> {
  const observed: unknown[] = [];
  for (const environment of [off, on]) {
    await using server = await startConfigured(environment);
    observed.push(await observe(server));
  }
  return new Differs(observed);
}

/** Sends a request on a connection that closes, and returns the response without its body. */
export async function get(
  { baseUrl }: ConfiguredServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(baseUrl + path, { headers: { connection: "close", ...headers } });
  await response.body?.cancel();
  return response;
}

/** Deletes plant 1, and returns the status. */
export async function deletePlant(
  { baseUrl }: ConfiguredServer,
  token: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<number> {
  const headers = { connection: "close", authorization: `Bearer ${token}`, ...fields };
  const { status, body } = await fetch(`${baseUrl}/plants/1`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}
