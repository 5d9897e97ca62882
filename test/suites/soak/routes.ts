import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { credentials, Metadata } from "@grpc/grpc-js";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { PlantServiceClient } from "../../../src/gen/grpc-js/plantstore/v1/plant_service.ts";
import { callHeader, type Connection, openRest, outcomeOf, patienceMs, type Replica } from "../cluster/callers.ts";

/** Statuses by which the proxy reports that a server is unavailable or late. The plant store has no 5xx at all. */
const proxyStatuses: readonly number[] = [503, 504];

/**
 * Returns the ways in which callers reach the store: each protocol through the proxy, and REST and gRPC at each replica.
 * @param lossyPort - leads to the proxy, but loses responses
 * @param onProblem - is called with a sentence for each 5xx that is not documented
 */
export function routesTo(
  proxyPort: number,
  lossyPort: number,
  replicaPorts: readonly number[],
  onProblem: (problem: string) => void,
): readonly Replica[] {
  const refuse = (name: string, allowed: readonly number[]) => (status: number) => {
    if (status >= 500 && !allowed.includes(status)) onProblem(`${name} responded with ${status}`);
  };
  const throughProxy = (protocol: string, open: (url: string) => Connection): Replica =>
    routeOf(`proxy-${protocol}`, proxyPort, open);
  const throughLoss = (protocol: string, open: (url: string) => Connection): Replica =>
    routeOf(`lossy-${protocol}`, lossyPort, (url) => withKeys(open(url)));
  const rest = (url: string): Connection => openRest(url, refuse("the proxy", proxyStatuses));
  return [
    throughProxy("rest", rest),
    throughLoss("rest", rest),
    throughProxy("grpc", openGrpc),
    throughLoss("grpc", openGrpc),
    throughProxy("grpc-web", (baseUrl) => openWeb(createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }))),
    throughProxy("connect", (baseUrl) => openWeb(createConnectTransport({ baseUrl, httpVersion: "1.1" }))),
    ...replicaPorts.flatMap((port, i) => [
      routeOf(`replica-${i}-rest`, port, (url) => openRest(url, refuse(`replica ${i}`, []))),
      routeOf(`replica-${i}-grpc`, port, openGrpc),
    ]),
  ];
}

function routeOf(name: string, port: number, open: (url: string) => Connection): Replica {
  const replicaUrl = `http://127.0.0.1:${port}`;
  return { machine: { name }, replicaUrl, open: () => open(replicaUrl) };
}

/** Repeats each call whose outcome is unknown once, with the same idempotency key, as retrying clients do. */
function withKeys(connection: Connection): Connection {
  return {
    delete: async (plant, name) => {
      const outcome = await connection.delete(plant, name, name);
      if (outcome !== "unknown") return outcome;
      const repeated = await connection.delete(plant, name, name);
      // The first attempt may have deleted the plant.
      return repeated === "refused" ? "unknown" : repeated;
    },
    close: () => connection.close(),
  };
}

function openGrpc(url: string): Connection {
  const client = new PlantServiceClient(new URL(url).host, credentials.createInsecure(), {
    "grpc.max_reconnect_backoff_ms": 1_000,
    // Opens a connection for each caller. By default, all callers would share one connection.
    "grpc.use_local_subchannel_pool": 1,
  });
  return {
    delete: (plant, name, key) =>
      new Promise((resolve) => {
        const metadata = new Metadata();
        for (const [field, value] of Object.entries(callHeader(name, key))) metadata.set(field, value);
        client.deletePlant({ id: BigInt(plant) }, metadata, { deadline: Date.now() + patienceMs }, (error) =>
          resolve(error === null ? "deleted" : outcomeOf(error.details)),
        );
      }),
    close: () => client.close(),
  };
}

function openWeb(transport: ReturnType<typeof createConnectTransport>): Connection {
  const client: Client<typeof PlantService> = createClient(PlantService, transport);
  return {
    delete: async (plant, name, key) => {
      try {
        await client.deletePlant({ id: BigInt(plant) }, { headers: callHeader(name, key), timeoutMs: patienceMs });
        return "deleted";
      } catch (error) {
        return outcomeOf(ConnectError.from(error).rawMessage);
      }
    },
    close: () => undefined,
  };
}
